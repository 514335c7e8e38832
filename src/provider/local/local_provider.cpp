#include "provider/local/local_provider.h"

#include "base/log.h"
#include "proc/sys_info.h"
#include "provider/local/impl.h"

#include <algorithm>
#include <utility>

namespace helio::provider {

LocalProvider::LocalProvider(rt::EventLoop& loop, const Clock& clock, model::Home home, model::PoolSettings settings, std::string agent,
                             LocalOptions options)
    : impl_(std::make_unique<Impl>(loop, clock, std::move(home), std::move(settings), std::move(agent), std::move(options))) {}
LocalProvider::~LocalProvider() = default;

Result<NodePlan> LocalProvider::plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) {
  return impl_->plan_node(slot, index, taken);
}
Result<void> LocalProvider::ensure(const NodeSpec& spec) { return impl_->ensure(spec); }
Result<void> LocalProvider::remove(const NodeId& node, Grace grace) { return impl_->remove(node, grace); }
Result<std::vector<NodeFact>> LocalProvider::list() { return impl_->list(); }
Result<std::vector<model::Host>> LocalProvider::capacity() { return impl_->capacity(); }
void LocalProvider::observe(Observer observer) { impl_->observe(std::move(observer)); }
std::optional<model::AgentStatus> LocalProvider::final_status(const NodeId& node) { return impl_->final_status(node); }
Result<std::vector<std::string>> LocalProvider::sweep(const std::vector<NodeId>& live) { return impl_->sweep(live); }

LocalProvider::Impl::Impl(rt::EventLoop& loop, const Clock& clock, model::Home home, model::PoolSettings settings, std::string agent,
                          LocalOptions options)
    : loop_(loop),
      clock_(clock),
      places_(std::move(home), settings.session_root.value_or("")),
      settings_(std::move(settings)),
      agents_(places_.agents(), std::move(agent)),
      isolation_(options.isolation ? *options.isolation : proc::probe_isolation().best),
      cgroups_(options.cgroups ? std::move(options.cgroups) : proc::make_cgroup_driver(places_.cgroup_parent())),
      boot_id_(options.boot_id.empty() ? proc::boot_id() : std::move(options.boot_id)),
      harvest_limit_(options.harvest_limit),
      sweep_spares_(options.sweep_spares) {
  gate_->impl = this;
  take_over();
}

LocalProvider::Impl::~Impl() {
  {
    const std::lock_guard lock(gate_->mutex);
    gate_->impl = nullptr;
  }
  work_.stop();
  wiper_.stop();
}

void LocalProvider::Impl::pass(const std::shared_ptr<Gate>& gate, std::move_only_function<void(Impl&)> fn) {
  const std::lock_guard lock(gate->mutex);
  if (gate->impl == nullptr) return;
  gate->impl->work_.post([impl = gate->impl, fn = std::move(fn)]() mutable { fn(*impl); });
}

LocalProvider::Impl::EntryPtr LocalProvider::Impl::find(const NodeId& node) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(node);
  return found == entries_.end() ? nullptr : found->second;
}

std::vector<LocalProvider::Impl::EntryPtr> LocalProvider::Impl::entries() {
  const std::lock_guard lock(mutex_);
  std::vector<EntryPtr> out;
  out.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) out.push_back(entry);
  return out;
}

void LocalProvider::Impl::set_stage(const EntryPtr& entry, Stage stage) {
  const std::lock_guard lock(mutex_);
  entry->stage = stage;
  entry->attempts = 0;
}

void LocalProvider::Impl::set_stage(const EntryPtr& entry, Stage stage, model::ProviderState state, std::string detail) {
  const std::lock_guard lock(mutex_);
  entry->stage = stage;
  entry->fact.state = state;
  entry->fact.detail = std::move(detail);
  entry->fact.at = clock_.now();
}

void LocalProvider::Impl::emit(const EntryPtr& entry, model::ProviderState state, std::string detail) {
  model::ProviderFact fact;
  fact.state = state;
  fact.detail = std::move(detail);
  fact.at = clock_.now();
  emit(entry, std::move(fact));
}

void LocalProvider::Impl::emit(const EntryPtr& entry, model::ProviderFact fact) {
  Observer observer;
  {
    const std::lock_guard lock(mutex_);
    entry->fact = fact;
    observer = observer_;
  }
  if (observer) observer(entry->id, fact);
}

std::string LocalProvider::Impl::cgroup_name(const EntryPtr& entry) {
  const std::lock_guard lock(mutex_);
  const std::string& folder = entry->launch.cgroup;
  return folder.substr(folder.find_last_of('/') + 1);
}

Result<NodePlan> LocalProvider::Impl::plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) {
  if (slot < 0 || index < 0) return fail(ErrorCode::invalid_argument, "slot {} and index {} must not be negative", slot, index);
  NodePlan plan;
  plan.temp_dir = places_.temp_dir(slot, index);
  plan.head_temp_dir = places_.temp_dir(slot, 0);
  if (plan.temp_dir.size() > local::kMaxTempDir) {
    return fail(ErrorCode::invalid_argument,
                "{} has {} bytes, but Ray's socket names leave room for {}: choose a shorter pool.session_root", plan.temp_dir,
                plan.temp_dir.size(), local::kMaxTempDir);
  }
  plan.work_dir = places_.work_dir(slot, index);
  plan.ray_token_file = local::NodeFolder{plan.work_dir}.ray_token();
  HELIO_TRY(address, places_.address(slot, index));
  HELIO_TRY(head_address, places_.address(slot, 0));
  plan.address = address;
  plan.head_address = head_address;
  plan.cgroup = cgroups_->folder(local::Places::cgroup_name(slot, index));

  std::set<std::int32_t> busy(taken.begin(), taken.end());
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry->launch.port_base != 0) busy.insert(entry->launch.port_base);
    if (entry->launch.temp_dir == plan.head_temp_dir) head_ports_.try_emplace(slot, entry->launch.port_base);
  }
  HELIO_TRY(base, local::find_ports(local::ephemeral_ports_from(), places_.port_hint(slot, index), busy, local::ports_are_free));
  plan.port_base = base;
  if (index == 0) head_ports_[slot] = base;
  const auto head = head_ports_.find(slot);
  plan.head_port_base = head == head_ports_.end() ? 0 : head->second;
  return plan;
}

Result<void> LocalProvider::Impl::ensure(const NodeSpec& spec) {
  const model::Assignment& a = spec.assignment;
  if (a.node.empty()) return fail(ErrorCode::invalid_argument, "a node needs an id");
  const std::string nodes = places_.home().nodes() + "/";
  if (!a.work_dir.starts_with(nodes) || a.work_dir.find('/', nodes.size()) != std::string::npos || a.work_dir.size() == nodes.size() ||
      a.work_dir[nodes.size()] == '.') {
    return fail(ErrorCode::invalid_argument, "work_dir {} is not a folder of {}", a.work_dir, nodes);
  }
  if (!a.temp_dir.starts_with(places_.session_folder() + "/") || a.temp_dir.contains("/../")) {
    return fail(ErrorCode::invalid_argument, "temp_dir {} is not below {}", a.temp_dir, places_.session_folder());
  }
  {
    // At once, so that list() and sweep() know of it from here on.
    const std::lock_guard lock(mutex_);
    auto& entry = entries_[a.node];
    if (!entry) {
      entry = std::make_shared<Entry>();
      entry->id = a.node;
      entry->folder.path = a.work_dir;
      entry->fact.detail = "being started";
      entry->launch.node = a.node;
      entry->launch.temp_dir = a.temp_dir;
      entry->launch.cgroup = a.cgroup;
      entry->launch.port_base = a.port_base;
    }
    entry->asked = clock_.mono();
  }
  work_.post([this, spec] { do_ensure(spec); });
  return {};
}

Result<void> LocalProvider::Impl::remove(const NodeId& node, Grace grace) {
  work_.post([this, node, grace] { do_remove(node, grace); });
  return {};
}

Result<std::vector<NodeFact>> LocalProvider::Impl::list() {
  const std::lock_guard lock(mutex_);
  std::vector<NodeFact> out;
  for (const auto& [id, entry] : entries_) {
    if (entry->fact.state != model::ProviderState::absent) out.push_back({.node = id, .fact = entry->fact});
  }
  return out;
}

void LocalProvider::Impl::observe(Observer observer) {
  {
    const std::lock_guard lock(mutex_);
    observer_ = std::move(observer);
  }
  // What had ended before we came: only now is there somebody to tell, and a daemon to take its last logs.
  work_.post([this] {
    for (const EntryPtr& entry : entries()) {
      if (entry->stage == Stage::settling && !entry->harvesting) settle(entry);
    }
  });
}

std::optional<model::AgentStatus> LocalProvider::Impl::final_status(const NodeId& node) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(node);
  return found == entries_.end() ? std::nullopt : found->second->final;
}

Result<std::vector<model::Host>> LocalProvider::Impl::capacity() {
  model::Host host;
  host.id = HostId("local");
  host.address = "127.0.0.1";
  host.physical_cpu = {proc::cpu_count() * 1000LL};
  host.cpu_overcommit = settings_.cpu_overcommit;
  host.capacity.cpu = {static_cast<std::int64_t>(static_cast<double>(host.physical_cpu.n) * settings_.cpu_overcommit)};
  host.capacity.memory = {static_cast<std::int64_t>(static_cast<double>(proc::memory_total().n) * settings_.memory_share)};
  HELIO_TRY(shm, proc::fs_space("/dev/shm"));
  host.capacity.shm = {shm.total.n / 100 * 95};  // Ray refuses a store of more
  {
    const std::lock_guard lock(mutex_);
    if (!gpus_) {
      gpus_.emplace();
      for (const proc::NvidiaGpu& gpu : proc::nvidia_gpus())
        gpus_->push_back({.index = gpu.index, .model = gpu.model, .memory = gpu.memory});
      const auto real = static_cast<std::int32_t>(gpus_->size());
      for (std::int32_t n = 0; n < settings_.virtual_gpus; ++n) {
        gpus_->push_back({.index = real + n, .model = "virtual", .memory = {}, .is_virtual = true});
      }
    }
    host.gpus = *gpus_;
  }
  host.capacity.gpus = static_cast<std::int32_t>(host.gpus.size());
  host.isolation = proc::to_string(isolation_);
  if (isolation_ == proc::Isolation::sessions) {
    const std::string& lost = proc::probe_isolation().lost;
    host.isolation += fmt::format(" ({})", lost.empty() ? "PID namespaces are switched off" : lost);
  }
  host.limits = cgroups_->about();
  if (cgroups_->kind() != proc::CgroupKind::none && settings_.cpu_overcommit > 1) {
    host.limits += fmt::format(", CPU by weight: the pool promises {:g} times what there is", settings_.cpu_overcommit);
  }
  if (const Result<void> session = places_.prepare(); !session) {
    host.state = model::HostState::offline;
    host.reason = session.error().message();
  }
  return std::vector{std::move(host)};
}

}  // namespace helio::provider
