#pragma once
// State tables as data. Every transition of a stored resource goes through can_go(); the test walks all pairs.

#include "base/json/json.h"

#include <string_view>

namespace helio::model {

/// queued → starting → running → succeeded | failed | stopped; restarting is back-off between attempts.
enum class JobState { queued, starting, running, restarting, suspended, stopping, succeeded, failed, stopped };

/// admitted → starting → checking → running → ending → one of the six verdicts. `ending`: the driver is over (or will not run),
/// logs are copied and the nodes taken down; the verdict is written when their death is proven.
enum class AttemptState { admitted, starting, checking, running, ending, succeeded, failed, stopped, preempted, suspended, lost };

/// requested → starting → ready → draining → gone; degraded: a node was lost; retained: kept for inspection after its attempt.
enum class ClusterState { requested, starting, ready, degraded, retained, draining, gone };

/// requested (row) → launched (provider made it) → connected (agent dialled in) → joined (row ALIVE in the GCS) → checked → serving →
/// draining → gone. unreachable is not death: only the provider's proof leads to gone.
enum class NodeState { requested, launched, connected, joined, checked, serving, unreachable, draining, gone };

enum class HostState { ready, suspect, draining, quarantined, probation, offline };

bool can_go(JobState from, JobState to);
bool can_go(AttemptState from, AttemptState to);
bool can_go(ClusterState from, ClusterState to);
bool can_go(NodeState from, NodeState to);
bool can_go(HostState from, HostState to);

bool is_terminal(JobState state);
bool is_terminal(AttemptState state);
bool is_terminal(ClusterState state);
bool is_terminal(NodeState state);

}  // namespace helio::model

HELIO_JSON_ENUM(helio::model::JobState)
HELIO_JSON_ENUM(helio::model::AttemptState)
HELIO_JSON_ENUM(helio::model::ClusterState)
HELIO_JSON_ENUM(helio::model::NodeState)
HELIO_JSON_ENUM(helio::model::HostState)
