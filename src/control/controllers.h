#pragma once
// One function per kind. Each looks at a draft of one aggregate, changes it, and asks for provider calls; none of them does I/O, so every
// rule of a job's life can be tested as data. A step runs them in this order: nodes, resize, attempts, clusters, jobs.

#include "control/classify.h"
#include "control/draft.h"

namespace helio::control {

/// States of nodes from what agents and the provider say; makes nodes, hurries the ones that shall go, and takes in proofs of death.
void step_nodes(Draft& draft);
/// Follows the spec of a long-lived cluster that runs: too many workers are told to leave, too few ask for room. Before step_attempt, which
/// does not judge the end of those that leave.
void step_resize(Draft& draft);
/// starting → running → ending → verdict: faults, deadlines, stop. The end waits until all nodes are proven dead (or are kept for
/// inspection) and says meanwhile what it waits for.
void step_attempt(Draft& draft);
/// Follows the attempt; keeps a retained cluster for its time.
void step_cluster(Draft& draft);
/// Deadlines and stop of a job without an attempt; back-off; the total deadline; follows the attempt's state.
void step_job(Draft& draft);

/// How the reason of a cluster begins that grows and has no room; what follows says what would help.
inline constexpr std::string_view kWaitsForRoom = "waits for room for more workers";

/// Raises what a node shall do next. False when it is there already.
bool ask(Draft& draft, Tracked<model::Node>& node, model::Phase phase);
/// Dead beyond doubt: the provider has said so.
bool proven_dead(const model::Node& node);
/// What classify() needs, from a draft.
AttemptFacts facts_of(const Draft& draft);

}  // namespace helio::control
