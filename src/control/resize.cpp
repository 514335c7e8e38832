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
  if (!draft.job || draft.job->value.spec.type != model::JobType::cluster || !draft.attempt || !draft.cluster) return false;
  const model::Attempt& attempt = draft.attempt->value;
  return draft.job->value.stop == model::StopReason::none && attempt.state == model::AttemptState::running && !attempt.stop_asked;
}

void stop_growing(Draft& draft) {
  if (!draft.job || !draft.job->value.growing_since) return;
  draft.job->value.growing_since.reset();
  draft.touch(*draft.job, "cluster.sized", "it does not wait for more workers");
}

void leave(Draft& draft, Tracked<model::Node>& node, std::string why) {
  node->leaving = true;
  ++node->generation;
  draft.touch(node, "node.leaving", why);
  if (node->state != model::NodeState::gone) node->reason = std::move(why);
  --draft.cluster->value.nodes;
  draft.touch(*draft.cluster, "cluster.sized", fmt::format("{} leaves", node_name(node->role, node->index)));
  Tracked<model::Node>& head = draft.nodes.front();
  ++head->generation;
  draft.touch(head, "node.asked", fmt::format("asked to drain {}", node_name(node->role, node->index)));
}

/// A worker that came later and did not make it takes nothing along: another one is tried.
void drop_failed_newcomers(Draft& draft) {
  for (Tracked<model::Node>& node : draft.nodes) {
    const bool newcomer = node->created > draft.attempt->value.created && !node->leaving && node->role == model::Role::worker;
    const bool never_made = node->fact.state == model::ProviderState::unknown && !node->fact.cause.empty();
    if (!newcomer || node->status.reached >= Phase::joined || !(node->status.fault || proven_dead(node.value) || never_made)) continue;
    const std::string why = node->status.fault ? node->status.fault->message : node->fact.detail;
    leave(draft, node, fmt::format("it could not be added: {}", why));
    ask(draft, node, Phase::drained);
    draft.job->value.not_before = draft.now() + kGrowAgain;
  }
}

}  // namespace

void step_resize(Draft& draft) {
  if (!resizes(draft)) return stop_growing(draft);
  drop_failed_newcomers(draft);
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
