#include "control/controllers.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::control {
namespace {

using model::AttemptState;
using model::ClusterState;
using model::NodeState;
using model::Phase;

bool attempt_over(const Draft& draft) { return !draft.attempt || model::is_terminal(draft.attempt->value.state); }

/// While its attempt lives.
void follow_attempt(Draft& draft) {
  const AttemptState state = draft.attempt->value.state;
  if (state == AttemptState::ending) {
    const bool all_going = std::ranges::all_of(draft.nodes, [](const auto& node) { return node->desired >= Phase::drained; });
    if (all_going) draft.go(ClusterState::draining, "its attempt is ending");
    return;
  }
  if (state == AttemptState::admitted) return;
  if (draft.cluster->value.state == ClusterState::requested) draft.go(ClusterState::starting, "its nodes are starting");
  if (draft.attempt->value.guest_of) return;  // a submitter has no Ray that could become ready
  const bool lost = std::ranges::any_of(draft.nodes, [](const auto& node) { return proven_dead(node.value) && !node->leaving; });
  if (lost) {
    draft.go(ClusterState::degraded, "a node was lost");
    return;
  }
  if (draft.cluster->value.state != ClusterState::starting || !draft.marked("api_up") || !draft.marked("nodes_alive")) return;
  // Ray's dashboard listens where the head was told to let it: not on the node's address, which its other ports are open on.
  draft.cluster->value.dashboard = fmt::format("http://127.0.0.1:{}", draft.nodes.front()->port_base + 1);
  draft.go(ClusterState::ready, "all its nodes are alive");
}

/// After its attempt: kept for its time, then taken down.
void keep(Draft& draft) {
  Tracked<model::Cluster>& cluster = *draft.cluster;
  if (cluster->state == ClusterState::draining) return;
  if (cluster->state != ClusterState::retained) {
    const Duration time = draft.job ? draft.job->value.spec.retention.time.d : Duration(0);
    cluster->retained_until = draft.now() + time;
    draft.go(ClusterState::retained, fmt::format("kept for inspection until {}", format_time(*cluster->retained_until)));
  }
  const Timestamp until = cluster->retained_until.value_or(draft.now());
  const std::string name = fmt::format("retain/{}/{}", cluster->id.value, until.us);
  if (!draft.passed(name, cluster->state_since, until - cluster->state_since)) return;
  for (Tracked<model::Node>& node : draft.nodes) ask(draft, node, Phase::drained);
  draft.go(ClusterState::draining, "its time for inspection is over");
}

}  // namespace

void step_cluster(Draft& draft) {
  if (!draft.cluster) return;
  if (!attempt_over(draft)) return follow_attempt(draft);
  const bool all_gone = std::ranges::all_of(draft.nodes, [](const auto& node) { return node->state == NodeState::gone; });
  if (!all_gone) return keep(draft);
  draft.go(ClusterState::gone, "all its nodes are gone");
  draft.forget_secrets("attempt/" + draft.cluster->value.attempt.value + "/");
}

}  // namespace helio::control
