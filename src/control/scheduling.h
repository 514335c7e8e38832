#pragma once
// From a decision of sched/ to what is written: job, attempt, cluster and nodes of a whole gang in one transaction.

#include "base/rng.h"
#include "base/sealer.h"
#include "control/draft.h"
#include "control/view.h"
#include "provider/provider.h"

#include <optional>
#include <string>
#include <vector>

namespace helio::control {

struct Admission {
  Transaction transaction;
  std::vector<Call> calls;  ///< the nodes to make, once it is durable
};

struct SchedulingOutcome {
  std::vector<Admission> admissions;
  std::vector<Transaction> reasons;  ///< why the first one that waits does so, if that is new
  std::optional<Duration> again;     ///< something transient is in the way
  /// The place of the first one that the pool has no room for. What stands behind it waits whatever it is, until the pool or a place up
  /// to this one changes.
  std::optional<View::QueueKey> blocked;
};

class Scheduling {
 public:
  Scheduling(provider::Provider& provider, const Sealer& sealer, Rng& rng) : provider_(provider), sealer_(sealer), rng_(rng) {}

  /// Decides about the front of the queue. What does not fit blocks what stands behind it, so the front is enough.
  SchedulingOutcome step(const View& view, Timestamp now);
  /// The attempt of a job that waits for a long-lived cluster; empty while that is not ready. Error: resource_exhausted for want of ports.
  Result<std::optional<Admission>> step_guest(const View& view, const Aggregate& guest, Timestamp now);
  /// Slots are given in turn, so that a path, an address or a port is not used again at once.
  void set_last_slot(std::int32_t slot) { last_slot_ = slot; }

 private:
  std::int32_t take_slot(std::set<std::int32_t>& used);
  /// The nodes of a gang, or of what is added to one, with their plans, secrets and calls.
  Result<std::vector<Put>> make_nodes(const model::Attempt& attempt, const model::Cluster& cluster,
                                      const std::vector<model::Placement>& placement, std::int32_t head_port_base,
                                      std::vector<std::int32_t>& ports, Timestamp now, Admission& out);
  Result<Admission> grow(const Aggregate& aggregate, const std::vector<model::Placement>& placement, std::vector<std::int32_t>& ports,
                         Timestamp now);
  Result<Admission> admit(const model::Job& job, const model::Image& image, const std::vector<model::Placement>& placement,
                          std::set<std::int32_t>& slots, std::vector<std::int32_t>& ports, Timestamp now,
                          const std::optional<AttemptId>& guest_of = {});

  provider::Provider& provider_;
  const Sealer& sealer_;
  Rng& rng_;
  std::int32_t last_slot_ = 0;
};

}  // namespace helio::control
