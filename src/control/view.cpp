#include "control/view.h"

#include <algorithm>
#include <array>

namespace helio::control {
namespace {

constexpr int kEventsPerPage = 1000;

template <class State>
std::vector<std::string> live_states(std::initializer_list<State> all) {
  std::vector<std::string> out;
  for (const State state : all) {
    if (!model::is_terminal(state)) out.emplace_back(json::enum_name(state));
  }
  return out;
}

std::vector<std::string> live_job_states() {
  using enum model::JobState;
  return live_states({queued, starting, running, restarting, suspended, stopping, succeeded, failed, stopped});
}
std::vector<std::string> live_attempt_states() {
  using enum model::AttemptState;
  return live_states({admitted, starting, checking, running, ending, succeeded, failed, stopped, preempted, suspended, lost});
}
std::vector<std::string> live_cluster_states() {
  using enum model::ClusterState;
  return live_states({requested, starting, ready, degraded, retained, draining, gone});
}

store::ListQuery in_states(std::vector<std::string> states) {
  store::ListQuery query;
  query.states = std::move(states);
  return query;
}

/// Reads rows that changed into a map by id.
template <class Key, class T>
Result<void> reload(store::ReadTx& tx, const std::set<std::string>& ids, std::map<Key, T>& map, View::Changes& changes) {
  for (const std::string& id : ids) {
    changes.pool = true;
    HELIO_TRY(found, tx.find<T>(id));
    if (found)
      map[Key(id)] = std::move(*found);
    else
      map.erase(Key(id));
  }
  return {};
}

}  // namespace

View::QueueKey View::queue_key(const model::Job& job) {
  return {9 - job.spec.priority, job.growing_since.value_or(job.queued_since.value_or(job.created)), job.id};
}

Result<View::Changes> View::refresh(store::Store& store) {
  Changes changes;
  if (revision_ >= 0 && store.revision() == revision_) return changes;
  HELIO_CHECK_OK(store.read([&](store::ReadTx& tx) -> Result<void> {
    changes = {};
    HELIO_TRY(now, tx.revision());
    if (revision_ < 0) {
      HELIO_CHECK_OK(load(tx, changes));
      revision_ = now;
      return {};
    }
    Touched touched;
    for (std::int64_t since = revision_; since < now;) {
      store::EventQuery query;
      query.since = since;
      query.limit = kEventsPerPage;
      query.names_only = true;
      auto events = tx.events(query);
      if (!events && events.error().code() == ErrorCode::precondition_failed) {
        HELIO_CHECK_OK(load(tx, changes));
        revision_ = now;
        return {};
      }
      if (!events) return std::unexpected(std::move(events).error());
      if (events->empty()) break;
      for (store::Event& event : *events) {
        since = event.revision;
        if (event.kind == "job")
          touched.jobs.insert(std::move(event.id));
        else if (event.kind == "attempt")
          touched.attempts.insert(std::move(event.id));
        else if (event.kind == "cluster")
          touched.clusters.insert(std::move(event.id));
        else if (event.kind == "node")
          touched.nodes.insert(std::move(event.id));
        else if (event.kind == "flavor")
          touched.flavors.insert(std::move(event.id));
        else if (event.kind == "image")
          touched.images.insert(std::move(event.id));
        else if (event.kind == "host")
          touched.hosts.insert(std::move(event.id));
      }
    }
    HELIO_CHECK_OK(apply(tx, touched, changes));
    revision_ = now;
    return {};
  }));
  add_guests(changes);
  return changes;
}

void View::add_guests(Changes& changes) const {
  std::set<JobId> more;
  for (const auto& [cluster, guests] : guests_) {
    if (changes.jobs.contains(cluster)) more.insert(guests.begin(), guests.end());
  }
  changes.jobs.merge(more);
}

bool View::has_guests(const JobId& cluster) const {
  const auto found = guests_.find(cluster);
  return found != guests_.end() &&
         std::ranges::any_of(found->second, [this](const JobId& guest) { return aggregates_.at(guest).attempt.has_value(); });
}

Result<void> View::load(store::ReadTx& tx, Changes& changes) {
  aggregates_.clear();
  clusters_.clear();
  guests_.clear();
  queue_.clear();
  flavors_.clear();
  images_.clear();
  hosts_.clear();
  changes.resynced = true;
  changes.pool = true;
  HELIO_TRY(jobs, tx.list<model::Job>(in_states(live_job_states())));
  for (auto& job : jobs.items) put(std::move(job), changes);
  HELIO_TRY(attempts, tx.list<model::Attempt>(in_states(live_attempt_states())));
  for (auto& attempt : attempts.items) put(std::move(attempt), changes);
  HELIO_TRY(clusters, tx.list<model::Cluster>(in_states(live_cluster_states())));
  for (auto& cluster : clusters.items) {
    store::ListQuery of_cluster;
    of_cluster.parent = cluster.id.value;
    put(std::move(cluster), changes);
    HELIO_TRY(nodes, tx.list<model::Node>(of_cluster));
    for (auto& node : nodes.items) put(std::move(node), changes);
  }
  HELIO_TRY(flavors, tx.list<model::Flavor>());
  for (auto& flavor : flavors.items) flavors_[flavor.name.value] = std::move(flavor);
  HELIO_TRY(images, tx.list<model::Image>());
  for (auto& image : images.items) images_[image.name.value] = std::move(image);
  HELIO_TRY(hosts, tx.list<model::Host>());
  for (auto& host : hosts.items) hosts_[host.id] = std::move(host);
  return {};
}

Result<void> View::apply(store::ReadTx& tx, const Touched& touched, Changes& changes) {
  // Owners before what they own: a node is only taken in when its cluster is live.
  for (const std::string& id : touched.jobs) {
    HELIO_TRY(job, tx.find<model::Job>(id));
    if (job)
      put(std::move(*job), changes);
    else
      remove_job(JobId(id), changes);
  }
  for (const std::string& id : touched.attempts) {
    HELIO_TRY(attempt, tx.find<model::Attempt>(id));
    if (attempt) put(std::move(*attempt), changes);
  }
  for (const std::string& id : touched.clusters) {
    HELIO_TRY(cluster, tx.find<model::Cluster>(id));
    if (cluster)
      put(std::move(*cluster), changes);
    else
      remove_cluster(ClusterId(id), changes);
  }
  for (const std::string& id : touched.nodes) {
    HELIO_TRY(node, tx.find<model::Node>(id));
    if (node) put(std::move(*node), changes);
  }
  HELIO_CHECK_OK(reload(tx, touched.flavors, flavors_, changes));
  HELIO_CHECK_OK(reload(tx, touched.images, images_, changes));
  HELIO_CHECK_OK(reload(tx, touched.hosts, hosts_, changes));
  return {};
}

void View::requeue(const std::optional<model::Job>& before, const model::Job* now, Changes& changes) {
  const auto place = [](const model::Job* job) -> std::optional<QueueKey> {
    if (job == nullptr || job->stop != model::StopReason::none) return std::nullopt;
    const bool grows = job->state == model::JobState::running && job->growing_since;
    const bool waits = grows || (job->state == model::JobState::queued && !job->guest_of);
    return waits ? std::optional(queue_key(*job)) : std::nullopt;
  };
  const std::optional<QueueKey> from = place(before ? &*before : nullptr);
  const std::optional<QueueKey> to = place(now);
  const bool resized =
      from && to &&
      !std::ranges::equal(before->spec.workers, now->spec.workers, {}, &model::WorkerGroup::count, &model::WorkerGroup::count);
  if (from == to && !resized) return;
  const auto touch = [&](const QueueKey& key) { changes.queue = changes.queue ? std::min(*changes.queue, key) : key; };
  if (from) {
    queue_.erase(*from);
    touch(*from);
  }
  if (to) {
    queue_.insert(*to);
    touch(*to);
  }
}

void View::put(model::Job job, Changes& changes) {
  const JobId id = job.id;
  changes.jobs.insert(id);
  const auto found = aggregates_.find(id);
  requeue(found == aggregates_.end() ? std::nullopt : std::move(found->second.job), &job, changes);
  if (job.guest_of) {
    changes.jobs.insert(*job.guest_of);
    if (model::is_terminal(job.state))
      forget_guest(*job.guest_of, id);
    else
      guests_[*job.guest_of].insert(id);
  }
  if (!model::is_terminal(job.state)) {
    aggregates_[id].job = std::move(job);
  } else if (found != aggregates_.end()) {
    found->second.job.reset();
    drop_if_over(id);
  }
}

void View::put(model::Attempt attempt, Changes& changes) {
  const JobId id = attempt.job;
  if (model::is_terminal(attempt.state)) {
    const auto found = aggregates_.find(id);
    if (found == aggregates_.end() || !found->second.attempt || found->second.attempt->id != attempt.id) return;
    found->second.attempt.reset();
    changes.jobs.insert(id);
    drop_if_over(id);
    return;
  }
  changes.jobs.insert(id);
  aggregates_[id].attempt = std::move(attempt);
}

void View::put(model::Cluster cluster, Changes& changes) {
  const JobId id = cluster.job;
  if (model::is_terminal(cluster.state)) {
    const auto found = aggregates_.find(id);
    if (found == aggregates_.end() || !found->second.cluster || found->second.cluster->id != cluster.id) return;
    forget_cluster(id, changes);
    return;
  }
  changes.jobs.insert(id);
  Aggregate& aggregate = aggregates_[id];
  if (aggregate.cluster) clusters_.erase(aggregate.cluster->id);
  clusters_[cluster.id] = id;
  aggregate.cluster = std::move(cluster);
}

void View::put(model::Node node, Changes& changes) {
  const auto found = aggregates_.find(node.job);
  if (found == aggregates_.end() || !found->second.cluster || found->second.cluster->id != node.cluster) return;
  changes.jobs.insert(node.job);
  if (node.state == model::NodeState::gone) changes.pool = true;
  found->second.nodes[node.index] = std::move(node);
}

void View::remove_job(const JobId& id, Changes& changes) {
  const auto found = aggregates_.find(id);
  if (found == aggregates_.end()) return;
  requeue(found->second.job, nullptr, changes);
  if (found->second.job && found->second.job->guest_of) forget_guest(*found->second.job->guest_of, id);
  found->second.job.reset();
  changes.jobs.insert(id);
  drop_if_over(id);
}

void View::remove_cluster(const ClusterId& id, Changes& changes) {
  if (const auto found = clusters_.find(id); found != clusters_.end()) forget_cluster(JobId(found->second), changes);
}

void View::forget_cluster(const JobId& id, Changes& changes) {
  Aggregate& aggregate = aggregates_.at(id);
  clusters_.erase(aggregate.cluster->id);
  aggregate.cluster.reset();
  aggregate.nodes.clear();
  changes.jobs.insert(id);
  changes.pool = true;
  drop_if_over(id);
}

void View::forget_guest(const JobId& cluster, const JobId& guest) {
  const auto found = guests_.find(cluster);
  if (found == guests_.end()) return;
  found->second.erase(guest);
  if (found->second.empty()) guests_.erase(found);
}

void View::drop_if_over(const JobId& id) {
  const auto found = aggregates_.find(id);
  if (found == aggregates_.end()) return;
  const Aggregate& a = found->second;
  if (!a.job && !a.attempt && !a.cluster) aggregates_.erase(found);
}

const Aggregate* View::find(const JobId& job) const {
  const auto found = aggregates_.find(job);
  return found == aggregates_.end() ? nullptr : &found->second;
}

template <class Visit>
void View::each_live_node(Visit&& visit) const {
  for (const auto& [cluster, job] : clusters_) {
    for (const auto& [index, node] : aggregates_.at(job).nodes) {
      if (node.state != model::NodeState::gone) visit(node);
    }
  }
}

std::vector<sched::HostView> View::host_views() const {
  std::map<HostId, sched::HostView> views;
  std::map<HostId, std::set<std::int32_t>> taken;
  for (const auto& [id, host] : hosts_) {
    sched::HostView& view = views[id];
    view.id = id;
    view.state = host.state;
    view.capacity = host.capacity;
  }
  each_live_node([&](const model::Node& node) {
    const auto found = views.find(node.host);
    if (found == views.end()) return;
    found->second.used += node.placement.resources;
    taken[node.host].insert(node.placement.gpus.begin(), node.placement.gpus.end());
  });
  std::vector<sched::HostView> out;
  out.reserve(views.size());
  for (auto& [id, view] : views) {
    for (const model::Gpu& gpu : hosts_.at(id).gpus) {
      if (!taken[id].contains(gpu.index)) view.free_gpus.push_back(gpu.index);
    }
    out.push_back(std::move(view));
  }
  return out;
}

std::set<std::int32_t> View::slots() const {
  std::set<std::int32_t> out;
  for (const auto& [cluster, job] : clusters_) out.insert(aggregates_.at(job).cluster->slot);
  return out;
}

std::vector<std::int32_t> View::port_bases() const {
  std::vector<std::int32_t> out;
  each_live_node([&](const model::Node& node) { out.push_back(node.port_base); });
  return out;
}

std::vector<NodeId> View::live_nodes() const {
  std::vector<NodeId> out;
  each_live_node([&](const model::Node& node) { out.push_back(node.id); });
  return out;
}

}  // namespace helio::control
