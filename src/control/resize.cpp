#include "control/controllers.h"
#include "model/gang.h"

#include <fmt/format.h>
#include <algorithm>
#include <ranges>

namespace helio::control {
namespace {

using model::Phase;

constexpr Duration kGrowAgain = 30s;  ///< after a newcomer that failed

bool resizes(const Draft& draft) {
  if (!draft.job || draft.job->value.spec.type != model::JobType::cluster || !draft.attempt || !draft.cluster || draft.nodes.empty())
    return false;
  const model::Attempt& attempt = draft.attempt->value;
  return draft.job->value.stop == model::StopReason::none && attempt.state == model::AttemptState::running && !attempt.stop_asked;
}

void stop_growing(Draft& draft) {
  if (!draft.job || !draft.job->value.growing_since) return;
  draft.job->value.growing_since.reset();
  // Of a job that has lost its cluster this is the back-off before the next.
  if (draft.job->value.state == model::JobState::running) draft.job->value.not_before.reset();
  draft.touch(*draft.job, "cluster.sized", "it does not wait for more workers");
  if (!draft.cluster || !draft.cluster->value.reason.starts_with(kWaitsForRoom)) return;
  draft.cluster->value.reason = "all its nodes are alive";
  draft.touch(*draft.cluster, "cluster.sized", draft.cluster->value.reason);
}

void leave(Draft& draft, Tracked<model::Node>& node, const std::string& why) {
  const std::string name = node_name(node->role, node->index);
  node->leaving = true;
  ++node->generation;
  draft.touch(node, "node.leaving", why);
  if (node->state != model::NodeState::gone) node->reason = why;
  // There is nothing to drain where Ray has not come up.
  if (!node->added && node->status.reached < Phase::joined) ask(draft, node, Phase::drained);
  --draft.cluster->value.nodes;
  draft.touch(*draft.cluster, "cluster.sized", name + " leaves");
  Tracked<model::Node>& head = draft.nodes.front();
  ++head->generation;
  draft.touch(head, "node.asked", "asked to drain " + name);
}

/// From when the head has counted it, the loss of a node is the cluster's.
void note_added(Draft& draft) {
  const std::vector<NodeId>& joined = draft.nodes.front()->status.nodes_joined;
  for (Tracked<model::Node>& node : draft.nodes) {
    if (node->added || std::ranges::find(joined, node->id) == joined.end()) continue;
    node->added = true;
    draft.touch(node, "node.added", "the cluster counts it");
    draft.forget_deadline("join/" + node->id.value);
  }
}

/// A worker that came later and did not make it takes nothing along: another one is tried.
void drop_failed_newcomers(Draft& draft) {
  const Duration patience = draft.job->value.spec.limits.readiness.d;
  for (Tracked<model::Node>& node : draft.nodes) {
    const bool newcomer = node->created > draft.attempt->value.created && !node->added && node->state != model::NodeState::gone;
    if (!newcomer) continue;
    const std::string deadline = "join/" + node->id.value;
    if (node->leaving) {
      // The head cannot drain what it never sees.
      if (draft.passed(deadline, node->created, patience)) ask(draft, node, Phase::drained);
      continue;
    }
    const bool never_made = node->fact.state == model::ProviderState::unknown && !node->fact.cause.empty();
    std::string why;
    if (node->status.fault) {
      why = node->status.fault->message;
    } else if (proven_dead(node.value) || never_made) {
      why = node->fact.detail;
    } else if (draft.passed(deadline, node->created, patience)) {
      why = fmt::format("it did not join within limits.readiness ({})", format_duration(patience));
    } else {
      continue;
    }
    leave(draft, node, "it could not be added: " + why);
    draft.job->value.not_before = draft.now() + kGrowAgain;
  }
}

/// What has left is no part of the gang any more.
void forget_the_gone(Draft& draft) {
  const auto left = [&](const model::Placement& place) {
    return std::ranges::any_of(
        draft.nodes, [&](const auto& node) { return node->id == place.node && node->leaving && node->state == model::NodeState::gone; });
  };
  if (std::erase_if(draft.attempt->value.placement, left) > 0) draft.touch(*draft.attempt, "attempt.sized", "workers have left");
}

}  // namespace

void step_resize(Draft& draft) {
  if (!resizes(draft)) return stop_growing(draft);
  note_added(draft);
  drop_failed_newcomers(draft);
  forget_the_gone(draft);
  model::Job& job = draft.job->value;
  std::int32_t missing = 0;
  for (const model::WorkerGroup& group : job.spec.workers) {
    std::vector<Tracked<model::Node>*> staying;
    for (Tracked<model::Node>& node : draft.nodes) {
      if (model::is_staying(node.value) && node->placement.group == group.name) staying.push_back(&node);
    }
    const auto there = static_cast<std::int32_t>(staying.size());
    missing += std::max(0, group.count - there);
    for (Tracked<model::Node>* node : staying | std::views::drop(std::max(0, group.count))) {
      leave(draft, *node, "leaves when its work has ended");
    }
  }
  if (missing == 0) return stop_growing(draft);
  if (job.growing_since) return;
  job.growing_since = draft.now();
  draft.touch(*draft.job, "cluster.grows", fmt::format("waits for room for {} more worker{}", missing, missing == 1 ? "" : "s"));
}

}  // namespace helio::control
