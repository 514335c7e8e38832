#include "store/observations.h"

#include "model/kinds.h"
#include "model/states.h"

#include <fmt/core.h>

#include <functional>
#include <string>
#include <utility>

namespace helio::store {
namespace {

using model::Node;
using model::NodeState;
using model::ProviderState;

/// What an observation did to a node.
enum class Change { none, stale, stored };

struct Observed {
  Change change = Change::none;
  std::string message;
  json::Object data;
};

bool is_final(ProviderState state) { return state == ProviderState::ended || state == ProviderState::absent; }

/// The state that an agent's own report speaks for.
NodeState state_reached(model::Phase reached) {
  switch (reached) {
    case model::Phase::idle:
      return NodeState::connected;
    case model::Phase::joined:
      return NodeState::joined;
    case model::Phase::checked:
      return NodeState::checked;
    case model::Phase::driving:
      return NodeState::serving;
    case model::Phase::drained:
    case model::Phase::gone:
      // That the node is gone is for the provider to prove.
      return NodeState::draining;
  }
  return NodeState::connected;
}

/// Moves the node if the table allows it; a report that lags behind the state changes nothing.
void follow(Node& node, NodeState to, Timestamp now, Observed& observed) {
  if (node.state == to || !model::can_go(node.state, to)) return;
  observed.data["from"] = json::enum_name(node.state);
  observed.data["state"] = json::enum_name(to);
  node.state = to;
  node.state_since = now;
}

/// One transaction: reads the node, lets `apply` change it, stores it with an event when something changed.
Result<Accepted> observe(Store& store, const NodeId& id, std::string_view actor, std::string_view type, Timestamp now,
                         const std::function<Observed(Node&)>& apply) {
  Accepted accepted = Accepted::yes;
  HELIO_CHECK_OK(store.write([&](WriteTx& tx) -> Result<void> {
    HELIO_TRY(node, tx.get<Node>(id.value));
    if (node.state == NodeState::gone) {
      accepted = Accepted::stale;
      return {};
    }
    Observed observed = apply(node);
    if (observed.change == Change::stale) accepted = Accepted::stale;
    if (observed.change != Change::stored) return {};
    Event event;
    event.at = now;
    event.actor = actor;
    event.type = type;
    event.message = std::move(observed.message);
    event.job = node.job.value;
    if (!observed.data.empty()) event.data = std::move(observed.data);
    return tx.put(node, std::move(event));
  }));
  return accepted;
}

json::Value without_usage(model::AgentStatus status) {
  status.usage.reset();
  status.sequence = 0;
  return json::encode(status);
}

std::string say(const model::AgentStatus& status) {
  if (status.fault) return fmt::format("{}: {}", status.fault->cause, status.fault->message);
  if (!status.step.empty()) return status.step;
  return fmt::format("reached {}", json::enum_name(status.reached));
}

std::string say(const model::ProviderFact& fact) {
  std::string text = "provider: ";
  text += json::enum_name(fact.state);
  if (!fact.detail.empty()) text += " (" + fact.detail + ")";
  return text;
}

bool same_fact(const model::ProviderFact& a, const model::ProviderFact& b) {
  return a.state == b.state && a.detail == b.detail && a.exit_code == b.exit_code && a.cause == b.cause;
}

}  // namespace

Result<Accepted> record_status(Store& store, const model::AgentStatus& status, Timestamp now) {
  return observe(store, status.node, "agent", "node.status", now, [&](Node& node) -> Observed {
    if (status.sequence <= node.status.sequence) return {.change = Change::stale};
    Observed observed;
    follow(node, state_reached(status.reached), now, observed);
    const bool moved = !observed.data.empty();
    if (!moved && without_usage(status) == without_usage(node.status)) return {.change = Change::none};
    // What the controllers say about a node that they take down, or cannot reach, stays.
    if (!status.step.empty() && node.state != NodeState::draining && node.state != NodeState::unreachable) node.reason = status.step;
    node.status = status;
    observed.change = Change::stored;
    observed.message = say(status);
    observed.data["sequence"] = status.sequence;
    return observed;
  });
}

Result<Accepted> record_connection(Store& store, const NodeId& node_id, bool connected, Timestamp now) {
  return observe(store, node_id, "agent", "node.connection", now, [&](Node& node) -> Observed {
    if (node.connected == connected) return {.change = Change::none};
    node.connected = connected;
    Observed observed{.change = Change::stored, .message = connected ? "agent connected" : "agent disconnected"};
    if (connected) follow(node, node.status.sequence > 0 ? state_reached(node.status.reached) : NodeState::connected, now, observed);
    observed.data["connected"] = connected;
    return observed;
  });
}

Result<Accepted> record_fact(Store& store, const NodeId& node_id, const model::ProviderFact& fact, Timestamp now) {
  return observe(store, node_id, "provider", "node.fact", now, [&](Node& node) -> Observed {
    if (same_fact(node.fact, fact)) return {.change = Change::none};
    if (is_final(node.fact.state)) return {.change = Change::stale};
    node.fact = fact;
    if (!node.fact.at) node.fact.at = now;
    Observed observed{.change = Change::stored, .message = say(fact)};
    // An unreachable node stays so: that its provider still sees it run is what makes it unreachable, not dead.
    if (fact.state == ProviderState::running && node.state == NodeState::requested) follow(node, NodeState::launched, now, observed);
    observed.data["fact"] = json::enum_name(fact.state);
    return observed;
  });
}

}  // namespace helio::store
