#include "service/live.h"

#include <algorithm>
#include <array>

namespace helio::service {
namespace {

constexpr std::array kWaiting{model::JobState::queued, model::JobState::restarting};

sched::HostView view_of(const model::Host& host) {
  sched::HostView view;
  view.id = host.id;
  view.state = host.state;
  view.capacity = host.capacity;
  for (const model::Gpu& gpu : host.gpus) view.free_gpus.push_back(gpu.index);
  return view;
}

/// States of live nodes by name, for the indexed column.
std::vector<std::string> live_node_states() {
  using enum model::NodeState;
  std::vector<std::string> names;
  for (const model::NodeState state : {requested, launched, connected, joined, checked, serving, unreachable, draining}) {
    names.emplace_back(json::enum_name(state));
  }
  return names;
}

}  // namespace

Result<std::shared_ptr<const Catalog>> LiveCatalog::load(std::int64_t& revision) {
  const auto catalog = std::make_shared<Catalog>();
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(now, tx.revision());
    HELIO_TRY(flavors, tx.list<model::Flavor>());
    for (model::Flavor& flavor : flavors.items) catalog->flavors.emplace(flavor.name.value, std::move(flavor));
    HELIO_TRY(images, tx.list<model::Image>());
    for (model::Image& image : images.items) catalog->images.emplace(image.name.value, std::move(image));
    HELIO_TRY(hosts, tx.list<model::Host>());
    for (const model::Host& host : hosts.items) catalog->hosts.push_back(view_of(host));
    revision = now;
    return {};
  }));
  catalog->settings = settings_;
  catalog->has_package = has_package_;
  return catalog;
}

Result<std::shared_ptr<const Catalog>> LiveCatalog::get() {
  std::int64_t newest = 0;
  for (const std::string_view kind :
       {model::KindOf<model::Flavor>::name, model::KindOf<model::Image>::name, model::KindOf<model::Host>::name}) {
    newest = std::max(newest, store_.changed(kind));
  }
  const std::lock_guard lock(mutex_);
  if (kept_ && revision_ >= newest) return kept_;
  HELIO_TRY(catalog, load(revision_));
  kept_ = std::move(catalog);
  return kept_;
}

Result<sched::State> load_state(store::ReadTx& tx, const std::map<std::string, model::Flavor>& flavors) {
  sched::State state;
  HELIO_TRY(hosts, tx.list<model::Host>());
  for (const model::Host& host : hosts.items) state.hosts.push_back(view_of(host));

  store::ListQuery live;
  live.states = live_node_states();
  HELIO_TRY(nodes, tx.list<model::Node>(live));
  for (const model::Node& node : nodes.items) {
    const auto host = std::ranges::find(state.hosts, node.host, &sched::HostView::id);
    if (host == state.hosts.end()) continue;
    host->used += node.placement.resources;
    std::erase_if(host->free_gpus,
                  [&](std::int32_t index) { return std::ranges::find(node.placement.gpus, index) != node.placement.gpus.end(); });
  }

  store::ListQuery waiting;
  for (const model::JobState name : kWaiting) waiting.states.emplace_back(json::enum_name(name));
  HELIO_TRY(jobs, tx.list<model::Job>(waiting));
  for (const model::Job& job : jobs.items) {
    if (job.stop != model::StopReason::none || job.guest_of) continue;
    auto members = model::members_of(job.spec, flavors);
    if (!members) continue;
    state.queue.push_back({job.id, job.spec.priority, job.queued_since.value_or(job.created), job.not_before, std::move(*members)});
  }
  store::ListQuery running;
  running.states = {std::string(json::enum_name(model::JobState::running))};
  HELIO_TRY(clusters, tx.list<model::Job>(running));
  for (const model::Job& job : clusters.items) {
    if (!job.growing_since || job.stop != model::StopReason::none || !job.current_attempt) continue;
    HELIO_TRY(attempt, tx.find<model::Attempt>(job.current_attempt->value));
    if (!attempt) continue;
    store::ListQuery of_cluster;
    of_cluster.parent = attempt->cluster.value;
    HELIO_TRY(rows, tx.list<model::Node>(of_cluster));
    std::vector<const model::Node*> there;
    for (const model::Node& node : rows.items) there.push_back(&node);
    auto members = model::members_missing(job.spec, there, flavors);
    if (members && !members->empty()) {
      state.queue.push_back({job.id, job.spec.priority, *job.growing_since, job.not_before, std::move(*members)});
    }
  }
  return state;
}

Result<std::vector<std::string>> live_jobs(store::ReadTx& tx, const std::function<bool(const model::JobSpec&)>& uses) {
  using enum model::JobState;
  store::ListQuery query;
  for (const model::JobState state : {queued, starting, running, restarting, suspended, stopping}) {
    query.states.emplace_back(json::enum_name(state));
  }
  HELIO_TRY(jobs, tx.list<model::Job>(query));
  std::vector<std::string> out;
  for (const model::Job& job : jobs.items) {
    if (uses(job.spec) && out.size() < 10) out.push_back(job.id.value);
  }
  return out;
}

}  // namespace helio::service
