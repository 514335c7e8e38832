#include "control/controllers.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::control {
namespace {

using model::NodeState;
using model::Phase;

constexpr Duration kUnreachableAfter = 15s;
constexpr Duration kDrainConnected = 120s;  ///< logs may be large; an agent that ships them is not disturbed
constexpr Duration kDrainAway = 30s;        ///< an agent that nobody hears
constexpr Duration kRemoveAgain = 15s;

bool going(const model::Node& node) { return node.desired >= Phase::drained; }

std::string death_text(const model::Node& node) {
  if (node.status.fault && !node.status.fault->message.empty()) return node.status.fault->message;
  if (!node.fact.detail.empty()) return node.fact.detail;
  return node.fact.state == model::ProviderState::absent ? "there is nothing of it" : "its agent has ended";
}

void bury(Draft& draft, Tracked<model::Node>& node) {
  if (!draft.memory(node->id).salvaged) {
    draft.call(Call::Kind::salvage, node->id);
    return;
  }
  if (draft.has_guests && node->role == model::Role::head) return;  // what its disk holds of them is theirs to take over
  draft.go(node, NodeState::gone, death_text(node.value));
  node->token_hash.clear();
  node->connected = false;
  draft.forget_secrets("node/" + node->id.value + "/");
  draft.remove_plan(node->id);
  draft.call(Call::Kind::wipe, node->id);  // the orphan sweep repeats it after a crash
}

/// A node that shall go: its agent leaves by itself, and is ended when it does not.
void see_off(Draft& draft, Tracked<model::Node>& node) {
  draft.go(node, NodeState::draining, "shipping its logs, then leaving");
  const NodeMemory memory = draft.memory(node->id);
  const bool never_made = node->fact.state == model::ProviderState::unknown && node->status.sequence == 0 && !memory.ensured;
  const bool failed = node->fact.state == model::ProviderState::unknown && !node->fact.cause.empty();
  const std::string name = "drain/" + node->id.value;
  bool overdue = draft.passed(name, node->state_since, kDrainConnected);
  if (!node->connected)
    overdue = draft.passed(name + "/away", draft.now(), kDrainAway) || overdue;
  else
    draft.forget_deadline(name + "/away");
  if (!never_made && !failed && !overdue) return;
  if (memory.removed_at && draft.mono() - *memory.removed_at < kRemoveAgain) {
    draft.wake_in(kRemoveAgain - (draft.mono() - *memory.removed_at));
    return;
  }
  if (memory.removed_at) draft.explain(node, "waiting for the provider's proof that it is dead");
  draft.call(Call::Kind::end, node->id);
  draft.wake_in(kRemoveAgain);
}

/// The states on the way up come with the observations; only silence is noticed here.
void watch(Draft& draft, Tracked<model::Node>& node) {
  const std::string away = "away/" + node->id.value;
  const bool heard_before = node->status.sequence > 0;
  if (node->connected || !heard_before || node->fact.state != model::ProviderState::running) {
    draft.forget_deadline(away);
  } else if (draft.passed(away, draft.now(), kUnreachableAfter)) {
    draft.go(node, NodeState::unreachable, "its agent does not answer; its processes may be running, so nothing is done to it");
  }
}

}  // namespace

bool proven_dead(const model::Node& node) {
  return node.state == NodeState::gone || node.fact.state == model::ProviderState::ended || node.fact.state == model::ProviderState::absent;
}

bool ask(Draft& draft, Tracked<model::Node>& node, Phase phase) {
  if (node->state == NodeState::gone || node->desired >= phase) return false;
  node->desired = phase;
  ++node->generation;
  if (phase >= Phase::drained) draft.go(node, NodeState::draining, "shipping its logs, then leaving");
  draft.touch(node, "node.asked", std::string("asked to become ") + std::string(json::enum_name(phase)));
  return true;
}

void step_nodes(Draft& draft) {
  for (Tracked<model::Node>& node : draft.nodes) {
    if (node->state == NodeState::gone) continue;
    if (proven_dead(node.value)) {
      bury(draft, node);
    } else if (going(node.value)) {
      see_off(draft, node);
    } else {
      // Only a node that nobody has ever seen may be made: making one twice could run its entrypoint twice.
      const bool unseen = node->fact.state == model::ProviderState::unknown && node->fact.cause.empty() && node->status.sequence == 0;
      if (unseen && node->state == NodeState::requested && !draft.memory(node->id).ensured) draft.call(Call::Kind::ensure, node->id);
      watch(draft, node);
    }
  }
}

}  // namespace helio::control
