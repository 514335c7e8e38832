#pragma once
// Why an attempt ended, from facts alone, and what policy does about it. Pure.
//
// The earliest root counts: a node that died explains a driver that failed after it. What our own teardown causes never counts. A driver
// that succeeded by itself has succeeded, unless completion is `all` and a node had failed before it.

#include "base/clock.h"
#include "model/cluster.h"
#include "model/job.h"

#include <optional>
#include <string>
#include <vector>

namespace helio::control {

/// One node as far as it tells why an attempt ended.
struct NodeFacts {
  NodeId id;
  model::Role role = model::Role::worker;
  std::int32_t index = 0;
  model::ProviderFact fact;
  model::AgentStatus status;
};

/// Something that did not happen on the attempt's nodes. We ask for a stop or a deadline ourselves.
struct Asked {
  std::string cause;    ///< stopped.user, stopped.idle, deadline.* or cluster.*
  std::string message;  ///< whole, with what to do next
  Timestamp at;
};

struct AttemptFacts {
  std::string stage;  ///< state in which it ended: admitted, starting, checking, running
  model::Completion completion = model::Completion::driver;
  std::vector<NodeFacts> nodes;
  std::optional<Asked> asked;
  std::optional<Asked> cluster_end;         ///< cluster.*: the long-lived cluster that it runs in is no more what it was
  std::optional<Timestamp> teardown_since;  ///< what happened on nodes after this is our own doing
};

/// Empty while nothing has ended the attempt.
std::optional<model::Verdict> classify(const AttemptFacts& facts);

/// "head", "w1", "w2".
std::string node_name(model::Role role, std::int32_t index);

/// What the job's policy does about a verdict.
struct Decision {
  bool retry = false;
  Duration backoff{0};
  std::string text;  ///< for verdict.decision
};
Decision decide(const model::Job& job, const model::Verdict& verdict);

}  // namespace helio::control
