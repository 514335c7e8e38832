#pragma once
// Pure decisions: no clock, store, log or thread. A gang (head + workers) is admitted whole or not at all.

#include "base/clock.h"
#include "base/ids.h"
#include "model/cluster.h"
#include "model/gang.h"
#include "model/pool.h"

#include <optional>
#include <string>
#include <vector>

namespace helio::sched {

using model::Member;

struct Gang {
  JobId job;
  std::int32_t priority = 5;
  Timestamp queued_since;
  std::optional<Timestamp> not_before;
  std::vector<Member> members;
};

struct HostView {
  HostId id;
  model::HostState state = model::HostState::ready;
  model::Resources capacity;
  model::Resources used;
  std::vector<std::int32_t> free_gpus;
};

/// Everything a decision depends on.
struct State {
  std::vector<HostView> hosts;
  std::vector<Gang> queue;  ///< any order; the decision sorts
};

/// Why a gang waits: structured, rendered by the API.
struct Refusal {
  JobId job;
  std::string constraint;     ///< cpu, memory, shm, gpus, order, back-off, no_host
  std::int32_t position = 0;  ///< 1 = next
  std::vector<JobId> ahead;   ///< at most 10
  model::Resources needed;    ///< of the whole gang
  model::Resources free;      ///< summed over ready hosts
  std::string message;        ///< for people: the smallest change that would help
};

struct Admission {
  JobId job;
  std::vector<model::Placement> placement;  ///< node ids are left empty; in the order of members
};

struct Plan {
  std::vector<Admission> admit;
  std::vector<Refusal> wait;
};

/// FIFO by (priority, queued_since, id): the first gang that does not fit stops the rest, so a large gang is never starved.
/// A gang in back-off is passed over. Deterministic.
Plan plan_admissions(const State& state, Timestamp now);

/// Could this gang ever run on these hosts if they were empty? Empty: yes. Otherwise the reason and the largest count that would fit.
struct Misfit {
  std::string constraint;          ///< cpu, memory, shm, gpus or no_host
  std::string group;               ///< "head", or the worker group that is too large
  std::string message;             ///< "3 workers of 16 CPUs need 48 CPUs; the pool has 8: at most 0 fit"
  std::int32_t largest_count = 0;  ///< of the worker group that is too large
};
std::optional<Misfit> never_fits(const std::vector<HostView>& hosts, const std::vector<Member>& members);

}  // namespace helio::sched
