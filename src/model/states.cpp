#include "model/states.h"

#include "base/json/describe.h"

#include <initializer_list>

namespace helio::model {

BOOST_DESCRIBE_ENUM(JobState, queued, starting, running, restarting, suspended, stopping, succeeded, failed, stopped)
BOOST_DESCRIBE_ENUM(AttemptState, admitted, starting, checking, running, ending, succeeded, failed, stopped, preempted, suspended, lost)
BOOST_DESCRIBE_ENUM(ClusterState, requested, starting, ready, degraded, retained, draining, gone)
BOOST_DESCRIBE_ENUM(NodeState, requested, launched, connected, joined, checked, serving, unreachable, draining, gone)
BOOST_DESCRIBE_ENUM(HostState, ready, suspect, draining, quarantined, probation, offline)

namespace {

template <class E>
constexpr unsigned bits(std::initializer_list<E> states) {
  unsigned out = 0;
  for (E s : states) out |= 1U << static_cast<unsigned>(s);
  return out;
}

constexpr unsigned job_targets(JobState from) {
  using enum JobState;
  switch (from) {
    case queued:
      return bits({starting, suspended, stopping, stopped, failed});
    case starting:
      return bits({running, restarting, queued, suspended, stopping, succeeded, failed, stopped});
    case running:
      return bits({restarting, queued, suspended, stopping, succeeded, failed, stopped});
    case restarting:
      return bits({queued, suspended, stopping, failed, stopped});
    case suspended:
      return bits({queued, stopping, stopped, failed});
    case stopping:
      return bits({succeeded, failed, stopped});
    case succeeded:
    case failed:
    case stopped:
      return 0;
  }
  return 0;
}

constexpr unsigned attempt_targets(AttemptState from) {
  using enum AttemptState;
  constexpr unsigned ends = bits({succeeded, failed, stopped, preempted, suspended, lost});
  switch (from) {
    case admitted:
      return bits({starting, ending}) | ends;
    case starting:
      return bits({checking, running, ending}) | ends;
    case checking:
      return bits({running, ending}) | ends;
    case running:
      return bits({ending}) | ends;
    case ending:
      return ends;
    default:
      return 0;
  }
}

constexpr unsigned cluster_targets(ClusterState from) {
  using enum ClusterState;
  switch (from) {
    case requested:
      return bits({starting, draining, gone});
    case starting:
      return bits({ready, degraded, retained, draining, gone});
    case ready:
      return bits({degraded, retained, draining, gone});
    case degraded:
      return bits({ready, retained, draining, gone});
    case retained:
      return bits({draining, gone});
    case draining:
      return bits({gone});
    case gone:
      return 0;
  }
  return 0;
}

constexpr unsigned node_targets(NodeState from) {
  using enum NodeState;
  switch (from) {
    case requested:
      return bits({launched, connected, joined, checked, serving, unreachable, draining, gone});
    case launched:
      return bits({connected, joined, checked, serving, unreachable, draining, gone});
    case connected:
      return bits({joined, checked, serving, unreachable, draining, gone});
    case joined:
      return bits({checked, serving, unreachable, draining, gone});
    case checked:
      return bits({serving, unreachable, draining, gone});
    case serving:
      return bits({unreachable, draining, gone});
    case unreachable:
      return bits({launched, connected, joined, checked, serving, draining, gone});
    case draining:
      return bits({gone});
    case gone:
      return 0;
  }
  return 0;
}

constexpr unsigned host_targets(HostState from) {
  using enum HostState;
  switch (from) {
    case ready:
      return bits({suspect, draining, quarantined, offline});
    case suspect:
      return bits({ready, draining, quarantined, offline});
    case draining:
      return bits({ready, quarantined, offline});
    case quarantined:
      return bits({probation, offline});
    case probation:
      return bits({ready, quarantined, draining, offline});
    case offline:
      return bits({ready, probation});
  }
  return 0;
}

template <class E>
bool has(unsigned set, E state) {
  return ((set >> static_cast<unsigned>(state)) & 1U) != 0;
}

}  // namespace

bool can_go(JobState from, JobState to) { return has(job_targets(from), to); }
bool can_go(AttemptState from, AttemptState to) { return has(attempt_targets(from), to); }
bool can_go(ClusterState from, ClusterState to) { return has(cluster_targets(from), to); }
bool can_go(NodeState from, NodeState to) { return has(node_targets(from), to); }
bool can_go(HostState from, HostState to) { return has(host_targets(from), to); }

bool is_terminal(JobState state) { return job_targets(state) == 0; }
bool is_terminal(AttemptState state) { return attempt_targets(state) == 0; }
bool is_terminal(ClusterState state) { return cluster_targets(state) == 0; }
bool is_terminal(NodeState state) { return node_targets(state) == 0; }

}  // namespace helio::model

HELIO_JSON_DEFINE_ENUM(helio::model::JobState)
HELIO_JSON_DEFINE_ENUM(helio::model::AttemptState)
HELIO_JSON_DEFINE_ENUM(helio::model::ClusterState)
HELIO_JSON_DEFINE_ENUM(helio::model::NodeState)
HELIO_JSON_DEFINE_ENUM(helio::model::HostState)
