#include "sim/checks.h"

#include "sched/sched.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

namespace helio::sim {
namespace {

constexpr Duration kAdmitWithin = 10s;
constexpr Duration kNoticeWithin = 60s;
constexpr std::int64_t kRevisionsAtOnce = 400;  ///< more of them while no time passes: the controllers go round in circles
constexpr int kReplayEvery = 16;                ///< steps that changed something
constexpr std::size_t kStoryKept = 400;

std::string when(MonoTime at) { return fmt::format("{:.3f}", static_cast<double>(at.us - 1'000'000) / 1e6); }

/// What may only grow in what an agent reports.
bool went_back(const model::AgentStatus& before, const model::AgentStatus& now) {
  if (now.driver.phase < before.driver.phase && before.driver.phase == model::DriverPhase::ended) return true;
  if (now.reached < before.reached) return true;
  return before.fault.has_value() && !now.fault.has_value();
}

}  // namespace

void Checks::breach(std::string what) {
  story_.push_back(when(time_.mono()) + " BREACH " + what);
  breaches_.push_back(std::move(what));
}

void Checks::after_step() {
  for (; world_breaches_ < world_.breaches().size(); ++world_breaches_) breach(world_.breaches()[world_breaches_]);
  if (store_.revision() == seen_) return;
  if (auto read = store_.read([this](store::ReadTx& tx) { return read_changes(tx); }); !read) breach("store: " + read.error().text());
  if (++changes_ % kReplayEvery == 0) check_replay();
  if (time_.mono() != moment_) {
    moment_ = time_.mono();
    moment_revision_ = seen_;
  } else if (seen_ - moment_revision_ > kRevisionsAtOnce) {
    breach("invariant 3: the controllers write without end");
  }
}

void Checks::check_replay() {
  if (auto replayed = replay_.check(); !replayed) breach("invariant 10: " + replayed.error().text());
}

Result<void> Checks::read_changes(store::ReadTx& tx) {
  store::EventQuery query;
  query.since = seen_;
  HELIO_TRY(events, tx.events(query));
  HELIO_TRY(revision, tx.revision());
  seen_ = events.empty() ? revision : events.back().revision;
  std::set<std::pair<std::string, std::string>> rows;
  for (const store::Event& event : events) {
    story_.push_back(fmt::format("{} {:<16} {} {}", when(time_.mono()), event.type, event.id, event.message));
    rows.emplace(event.kind, event.id);
  }
  if (story_.size() > 2 * kStoryKept) story_.erase(story_.begin(), story_.end() - static_cast<std::ptrdiff_t>(kStoryKept));
  const auto each = [&]<class T>(const char* kind, std::optional<T>) -> Result<void> {
    for (const auto& [row_kind, id] : rows) {
      if (row_kind != kind) continue;
      HELIO_TRY(found, tx.find<T>(id));
      if (found)
        look_at(*found);
      else
        breach(fmt::format("invariant 1: {} {} is gone", kind, id));
    }
    return {};
  };
  HELIO_CHECK_OK(each("cluster", std::optional<model::Cluster>()));
  HELIO_CHECK_OK(each("node", std::optional<model::Node>()));
  HELIO_CHECK_OK(each("attempt", std::optional<model::Attempt>()));
  HELIO_CHECK_OK(each("job", std::optional<model::Job>()));
  check_pool();
  return {};
}

void Checks::look_at(const model::Job& job) {
  const std::string& id = job.id.value;
  if (const auto known = jobs_.find(job.id); known != jobs_.end()) {
    const model::JobState before = known->second.state;
    if (before != job.state && model::is_terminal(before)) {
      breach(fmt::format("invariant 3: {} was {} and is {}", id, json::enum_name(before), json::enum_name(job.state)));
    }
  }
  const bool over = model::is_terminal(job.state);
  if (!over && job.reason.empty()) breach(fmt::format("invariant 3: {} is {} without a reason", id, json::enum_name(job.state)));
  if (over && !job.verdict) breach(fmt::format("invariant 8: {} is {} without a verdict", id, json::enum_name(job.state)));
  std::int32_t charged = 0;
  for (const auto& [name, count] : job.ledger) charged += count;
  if (job.attempts > charged + 1) breach(fmt::format("invariant 8: {} has {} attempts, {} retries charged", id, job.attempts, charged));
  jobs_[job.id] = job;
}

void Checks::look_at(const model::Attempt& attempt) {
  const auto known = attempts_.find(attempt.id);
  const bool was_over = known != attempts_.end() && model::is_terminal(known->second.state);
  if (was_over && known->second.state != attempt.state) breach("invariant 3: " + attempt.id.value + " changed after its end");
  const bool over = model::is_terminal(attempt.state);
  if (!over) {
    for (const auto& [id, other] : attempts_) {
      if (other.job == attempt.job && id != attempt.id && !model::is_terminal(other.state)) {
        breach(fmt::format("invariant 2: {} and {} live at once", id.value, attempt.id.value));
      }
    }
  }
  attempts_[attempt.id] = attempt;
  if (over && !was_over) check_ended(attempt);
}

void Checks::check_ended(const model::Attempt& attempt) {
  const auto cluster = clusters_.find(attempt.cluster);
  const bool retained = cluster != clusters_.end() && cluster->second.state == model::ClusterState::retained;
  for (const model::Placement& place : attempt.placement) {
    if (world_.alive(place.node) && !retained) {
      breach(fmt::format("invariant 2: {} ended while its node {} lives", attempt.id.value, place.node.value));
    }
    if (!retained && logs_.held(place.node) < world_.log_written(place.node)) {
      breach(fmt::format("invariant 6: {} ended with {} of {} log bytes of {}", attempt.id.value, logs_.held(place.node),
                         world_.log_written(place.node), place.node.value));
    }
  }
  if (world_.driver_runs(attempt.id) && !retained) breach("invariant 2: " + attempt.id.value + " ended while its entrypoint runs");
  if (!attempt.verdict) return breach("invariant 8: " + attempt.id.value + " ended without a verdict");
  if (attempt.verdict->decision.empty()) breach("invariant 8: " + attempt.id.value + " has a verdict without a decision");
}

void Checks::look_at(const model::Cluster& cluster) {
  if (clusters_.contains(cluster.id)) {
    clusters_[cluster.id] = cluster;
    return;
  }
  clusters_[cluster.id] = cluster;
  store::ListQuery query;
  query.parent = cluster.id.value;
  std::int64_t count = 0;
  auto read = store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(counted, tx.count_rows("node", query));
    count = counted;
    return {};
  });
  if (read && count != cluster.nodes)
    breach(fmt::format("invariant 7: {} of {} nodes of {} were admitted", count, cluster.nodes, cluster.id.value));
}

void Checks::look_at(const model::Node& node) {
  const auto known = nodes_.find(node.id);
  if (known != nodes_.end()) {
    const bool was_gone = known->second.state == model::NodeState::gone;
    if (was_gone && node.state != model::NodeState::gone) breach("invariant 3: " + node.id.value + " came back");
    if (!world_.restarted(node.id) && went_back(known->second.status, node.status))
      breach("protocol: a stale report of " + node.id.value + " was believed");
  }
  if (node.state == model::NodeState::gone && world_.alive(node.id)) breach("invariant 2: " + node.id.value + " is called gone and lives");
  nodes_[node.id] = node;
}

void Checks::check_pool() {
  std::map<HostId, model::Resources> used;
  std::map<std::int32_t, const model::Node*> ports;
  for (const auto& [id, node] : nodes_) {
    if (node.state == model::NodeState::gone) continue;
    used[node.host] += node.placement.resources;
    const auto [other, fresh] = ports.emplace(node.port_base, &node);
    if (!fresh) breach(fmt::format("invariant 7: {} and {} have the same ports", id.value, other->second->id.value));
  }
  for (const model::Host& host : world_.hosts()) {
    if (!used[host.id].fits_in(host.capacity)) breach("invariant 7: more is placed on " + host.id.value + " than it has");
  }
}

void Checks::progress(std::optional<MonoTime> up_since) {
  const MonoTime now = time_.mono();
  if (!up_since || now - *up_since < kAdmitWithin) {
    could_start_since_.clear();
    unnoticed_since_.clear();
    return;
  }
  const auto lasts = [&](auto& since, const auto& id, bool holds, Duration limit) {
    if (!holds) {
      since.erase(id);
      return false;
    }
    return now - since.try_emplace(id, now).first->second > limit;
  };
  // The first of the queue starts soon after it could.
  const model::Job* first = nullptr;
  const auto key = [](const model::Job& job) {
    return std::tuple(-job.spec.priority, job.growing_since.value_or(job.queued_since.value_or(job.created)), job.id);
  };
  const auto waits = [this](const model::Job& job) {
    const bool grows = job.state == model::JobState::running && job.growing_since && !(job.not_before && *job.not_before > time_.now());
    return job.stop == model::StopReason::none && (grows || (job.state == model::JobState::queued && !job.guest_of));
  };
  for (const auto& [id, job] : jobs_) {
    if (waits(job) && (first == nullptr || key(job) < key(*first))) first = &job;
  }
  for (const auto& [id, job] : jobs_) {
    const bool could_start = job.guest_of ? waits_for_a_ready_cluster(job) : &job == first && fits_now(job);
    if (lasts(could_start_since_, id, could_start, kAdmitWithin)) {
      breach(fmt::format("invariant 7: {} could start and is not started", id.value));
    }
  }
  // An entrypoint that has ended is seen to have ended.
  for (const auto& [id, attempt] : attempts_) {
    const auto ended = world_.driver_ended(id);
    const bool head_heard = world_.reachable(attempt.placement.front().node);
    const bool unnoticed = ended && head_heard && attempt.state < model::AttemptState::ending;
    if (lasts(unnoticed_since_, id, unnoticed, kNoticeWithin)) {
      breach(fmt::format("invariant 3: the entrypoint of {} ended and nobody took note", id.value));
    }
  }
}

bool Checks::waits_for_a_ready_cluster(const model::Job& job) const {
  if (job.state != model::JobState::queued || job.stop != model::StopReason::none) return false;
  const auto cluster = jobs_.find(*job.guest_of);
  if (cluster == jobs_.end() || cluster->second.stop != model::StopReason::none || !cluster->second.current_attempt) return false;
  const auto attempt = attempts_.find(*cluster->second.current_attempt);
  return attempt != attempts_.end() && attempt->second.state == model::AttemptState::running && !attempt->second.stop_asked;
}

bool Checks::fits_now(const model::Job& job) const {
  sched::State state;
  for (const model::Host& host : world_.hosts()) {
    sched::HostView view;
    view.id = host.id;
    view.capacity = host.capacity;
    for (const auto& [id, node] : nodes_) {
      if (node.host == host.id && node.state != model::NodeState::gone) view.used += node.placement.resources;
    }
    state.hosts.push_back(std::move(view));
  }
  std::map<std::string, model::Flavor> flavors;
  auto listed = store::list<model::Flavor>(store_);
  if (!listed) return false;
  for (model::Flavor& flavor : listed->items) flavors[flavor.name.value] = std::move(flavor);
  std::vector<const model::Node*> there;
  for (const auto& [id, node] : nodes_) {
    if (job.current_attempt && node.attempt == *job.current_attempt) there.push_back(&node);
  }
  auto members = job.growing_since ? model::members_missing(job.spec, there, flavors) : model::members_of(job.spec, flavors);
  if (!members || members->empty()) return false;
  state.queue.push_back({job.id, job.spec.priority, job.created, std::nullopt, std::move(*members)});
  return !sched::plan_admissions(state, time_.now()).admit.empty();
}

bool Checks::all_over() const {
  return std::ranges::all_of(jobs_, [](const auto& entry) { return model::is_terminal(entry.second.state); }) &&
         std::ranges::all_of(clusters_, [](const auto& entry) { return model::is_terminal(entry.second.state); });
}

void Checks::check_secrets() {
  auto read = store_.read([&](store::ReadTx& tx) -> Result<void> {
    for (const auto& [id, node] : nodes_) {
      HELIO_TRY(token, tx.get_secret("node/" + id.value + "/token"));
      if (token) breach("invariant 5: the token of " + id.value + " is still there");
      HELIO_TRY(plan, tx.get_row("node_plan", id.value));
      if (plan) breach("invariant 5: the plan of " + id.value + " is still there");
    }
    for (const auto& [id, attempt] : attempts_) {
      HELIO_TRY(token, tx.get_secret("attempt/" + id.value + "/ray_token"));
      if (token) breach("invariant 5: the Ray token of " + id.value + " is still there");
    }
    return {};
  });
  if (!read) breach("store: " + read.error().text());
}

void Checks::at_end(const std::set<JobId>& acknowledged) {
  check_replay();
  for (const JobId& id : acknowledged) {
    if (!jobs_.contains(id)) breach("invariant 1: " + id.value + " was acknowledged and is lost");
  }
  for (const auto& [id, job] : jobs_) {
    if (!model::is_terminal(job.state)) {
      breach(fmt::format("invariant 3: {} is still {}: {}", id.value, json::enum_name(job.state), job.reason));
    }
  }
  for (const auto& [id, cluster] : clusters_) {
    if (!model::is_terminal(cluster.state)) breach(fmt::format("invariant 5: {} is still {}", id.value, json::enum_name(cluster.state)));
  }
  for (const NodeId& node : world_.present()) breach("invariant 5: " + node.value + " is still there");
  check_secrets();
}

std::vector<std::string> Checks::story(std::size_t lines) const {
  const std::size_t from = story_.size() > lines ? story_.size() - lines : 0;
  return {story_.begin() + static_cast<std::ptrdiff_t>(from), story_.end()};
}

}  // namespace helio::sim
