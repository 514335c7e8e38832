#include "control/draft.h"

#include "base/check.h"

#include <algorithm>

namespace helio::control {
namespace {

template <class State>
bool allowed(State from, State to) {
  const bool ok = model::can_go(from, to);
  HELIO_SOFT_CHECK(ok, "a controller asked for a state change that the table forbids");
  return ok;
}

template <class T, class State>
void enter(T& row, State to, std::string reason, Timestamp now) {
  row.state = to;
  row.state_since = now;
  row.reason = std::move(reason);
}

template <class State>
std::string state_message(State to, const std::string& reason) {
  const std::string name(json::enum_name(to));
  return reason.empty() ? name : name + ": " + reason;
}

template <class T>
std::optional<Put> put_of(const std::optional<Tracked<T>>& row) {
  if (!row || !row->event) return std::nullopt;
  return Put{row->value, *row->event};
}

}  // namespace

store::Event control_event(Timestamp at, const JobId& job, std::string type, std::string message) {
  store::Event event;
  event.at = at;
  event.actor = "control";
  event.type = std::move(type);
  event.message = std::move(message);
  event.job = job.value;
  return event;
}

Draft::Draft(const Aggregate& aggregate, JobId id, Moment moment, Deadlines& deadlines, const std::map<NodeId, NodeMemory>& memory)
    : id_(std::move(id)), moment_(moment), deadlines_(deadlines), memory_(memory) {
  if (aggregate.job) job.emplace(*aggregate.job);
  if (aggregate.attempt) attempt.emplace(*aggregate.attempt);
  if (aggregate.cluster) cluster.emplace(*aggregate.cluster);
  nodes.reserve(aggregate.nodes.size());
  for (const auto& [index, node] : aggregate.nodes) nodes.push_back({node, {}});
}

NodeMemory Draft::memory(const NodeId& node) const {
  const auto found = memory_.find(node);
  return found == memory_.end() ? NodeMemory{} : found->second;
}

store::Event Draft::event(std::string type, std::string message) const {
  return control_event(now(), id_, std::move(type), std::move(message));
}

bool Draft::go(model::JobState to, std::string reason) {
  if (!job || job->value.state == to) return false;
  if (!allowed(job->value.state, to)) return false;
  job->event = event("job." + std::string(json::enum_name(to)), state_message(to, reason));
  enter(job->value, to, std::move(reason), now());
  return true;
}

bool Draft::go(model::AttemptState to, std::string reason) {
  if (!attempt || attempt->value.state == to) return false;
  if (!allowed(attempt->value.state, to)) return false;
  attempt->event = event("attempt." + std::string(json::enum_name(to)), state_message(to, reason));
  enter(attempt->value, to, std::move(reason), now());
  return true;
}

bool Draft::go(model::ClusterState to, std::string reason) {
  if (!cluster || cluster->value.state == to) return false;
  if (!allowed(cluster->value.state, to)) return false;
  cluster->event = event("cluster." + std::string(json::enum_name(to)), state_message(to, reason));
  enter(cluster->value, to, std::move(reason), now());
  return true;
}

bool Draft::go(Tracked<model::Node>& node, model::NodeState to, std::string reason) {
  if (node->state == to) return false;
  if (!allowed(node->state, to)) return false;
  node.event = event("node." + std::string(json::enum_name(to)), state_message(to, reason));
  enter(node.value, to, std::move(reason), now());
  return true;
}

void Draft::explain(Tracked<model::Job>& row, std::string reason) {
  if (row->reason == reason) return;
  touch(row, "job.reason", reason);
  row->reason = std::move(reason);
}

void Draft::explain(Tracked<model::Attempt>& row, std::string reason) {
  if (row->reason == reason) return;
  touch(row, "attempt.reason", reason);
  row->reason = std::move(reason);
}

void Draft::explain(Tracked<model::Node>& row, std::string reason) {
  if (row->reason == reason) return;
  touch(row, "node.reason", reason);
  row->reason = std::move(reason);
}

bool Draft::passed(const std::string& name, Timestamp since, Duration limit) {
  const Duration left = deadlines_.left(id_.value, name, since, limit, moment_.wall, moment_.mono);
  if (left <= Duration(0)) return true;
  wake_in(left);
  return false;
}

void Draft::wake_in(Duration delay) {
  if (!wake_ || delay < *wake_) wake_ = delay;
}

bool Draft::mark(std::string_view name, Timestamp at) {
  if (!attempt || marked(name)) return false;
  attempt->value.marks.push_back({std::string(name), at});
  touch(*attempt, "attempt.mark", std::string(name));
  return true;
}

std::optional<Timestamp> Draft::marked(std::string_view name) const {
  if (!attempt) return std::nullopt;
  const auto found = std::ranges::find(attempt->value.marks, name, &model::Mark::name);
  if (found == attempt->value.marks.end()) return std::nullopt;
  return found->at;
}

Transaction Draft::transaction() const {
  Transaction out;
  if (auto put = put_of(job)) out.puts.push_back(std::move(*put));
  if (auto put = put_of(attempt)) out.puts.push_back(std::move(*put));
  if (auto put = put_of(cluster)) out.puts.push_back(std::move(*put));
  for (const auto& node : nodes) {
    if (node.event) out.puts.push_back({node.value, *node.event});
  }
  out.forget_secrets = forget_;
  out.remove_plans = plans_;
  return out;
}

}  // namespace helio::control
