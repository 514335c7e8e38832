// From a spec to a running agent.

#include "base/log.h"
#include "model/ray_version.h"
#include "proc/files.h"
#include "proc/sys_info.h"
#include "provider/local/impl.h"

#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>

namespace helio::provider {
namespace {

constexpr std::int64_t kMaxTasks = 32768;

/// An unreadable version is taken for a new one.
bool shares_head_temp_dir(std::string_view version) {
  const auto parsed = model::parse_ray_version(version);
  return parsed && *parsed < model::kRayOwnTempDir;
}

std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);  // NOLINT: nobody sets variables while we run
  return value != nullptr ? value : otherwise;
}

}  // namespace

void LocalProvider::Impl::do_ensure(const NodeSpec& spec) {
  const EntryPtr entry = find(spec.assignment.node);
  if (!entry || entry->removal) return;
  switch (entry->stage) {
    case Stage::requested:
      return launch(entry, spec);
    case Stage::running:
      return update(entry, spec);
    case Stage::settling:
    case Stage::wiping:
      return;
    case Stage::ended:
      return emit(entry, entry->fact);  // whoever asks has not heard of it
  }
}

void LocalProvider::Impl::update(const EntryPtr& entry, const NodeSpec& spec) {
  if (spec.assignment.generation <= entry->launch.generation) return;
  model::Assignment assignment = spec.assignment;
  assignment.env.insert_or_assign(std::string(proc::kHomeTag), places_.home_id());
  const auto written = proc::write_file(entry->folder.assignment(), json::dump(json::encode(assignment)));
  if (!written) return log::error("node {}: {}", entry->id.str(), written.error().text());
  entry->launch.generation = spec.assignment.generation;
}

void LocalProvider::Impl::launch(const EntryPtr& entry, const NodeSpec& spec) {
  const auto give_up = [&](const Error& error) {
    log::warn("node {} cannot be made: {}", entry->id.str(), error.text());
    if (!entry->foreign) {
      if (const auto removed = cgroups_->remove(cgroup_name(entry)); !removed) log::warn("{}", removed.error().text());
    }
    entry->harvested = true;
    model::ProviderFact fact;
    fact.state = model::ProviderState::ended;
    fact.detail = error.message();
    fact.cause = model::cause::kProviderFailed;
    fact.at = clock_.now();
    if (!entry->foreign) {  // best effort: this may be the full disk that was the reason
      static_cast<void>(proc::write_file(entry->folder.end(), json::dump(json::encode(local::EndRecord{fact, true}))));
    }
    set_stage(entry, Stage::ended);
    emit(entry, std::move(fact));
  };
  entry->foreign = place_is_taken(entry);
  if (entry->foreign) return give_up(Error(ErrorCode::conflict, fmt::format("{} is still the place of another node", entry->folder.path)));
  if (const auto written = write_files(entry, spec); !written) return give_up(written.error());
  if (const auto made = make_session(entry); !made) return give_up(made.error());
  if (!entry->launch.cgroup.empty()) {
    if (const auto made = cgroups_->create(cgroup_name(entry), limits_of(spec.limits)); !made) return give_up(made.error());
  }
  if (const auto started = start_agent(entry); !started) return give_up(started.error());
}

proc::CgroupLimits LocalProvider::Impl::limits_of(const model::Resources& resources) const {
  proc::CgroupLimits limits;
  limits.memory = resources.memory;
  // An over-committed pool sells more CPU than there is: then a CPU is a share under contention, and nobody idles beside free cores.
  limits.cpu_weight = resources.cpu;
  if (settings_.cpu_overcommit <= 1) limits.cpu_quota = resources.cpu;
  limits.pids = kMaxTasks;
  return limits;
}

bool LocalProvider::Impl::place_is_taken(const EntryPtr& entry) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, other] : entries_) {
    if (other == entry || other->foreign) continue;
    if (other->folder.path == entry->folder.path || other->launch.temp_dir == entry->launch.temp_dir) return true;
  }
  return false;
}

Result<void> LocalProvider::Impl::write_files(const EntryPtr& entry, const NodeSpec& spec) {
  const local::NodeFolder& folder = entry->folder;
  HELIO_CHECK_OK(proc::make_folders(folder.path));
  HELIO_TRY(agent, agents_.current());
  model::Assignment assignment = spec.assignment;
  assignment.env.insert_or_assign(std::string(proc::kHomeTag), places_.home_id());
  // Planned by a daemon that may have lived in another group than this one.
  if (!assignment.cgroup.empty()) assignment.cgroup = cgroups_->folder(cgroup_name(entry));

  local::LaunchRecord launch;
  launch.node = entry->id;
  launch.home = places_.home().root;
  launch.home_id = places_.home_id();
  launch.daemon_file = places_.home().daemon_file();
  launch.daemon_url = spec.daemon_url;
  launch.agent = agent;
  launch.temp_dir = assignment.temp_dir;
  launch.head_temp_dir = assignment.head_temp_dir;
  // Old workers ignore their own --temp-dir and use the head's path.
  launch.bind_temp_dir = isolation_ != proc::Isolation::sessions && assignment.role == model::Role::worker &&
                         shares_head_temp_dir(assignment.ray_version) && launch.head_temp_dir != launch.temp_dir;
  launch.port_base = assignment.port_base;
  launch.cgroup = assignment.cgroup;
  launch.isolation = proc::to_string(isolation_);
  launch.generation = assignment.generation;
  launch.created = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    entry->launch = launch;
  }
  if (!spec.ray_token.empty() && !assignment.ray_token_file.empty()) {
    HELIO_CHECK_OK(proc::write_file(assignment.ray_token_file, spec.ray_token));
  }
  HELIO_CHECK_OK(proc::write_file(folder.token(), spec.agent_token));
  HELIO_CHECK_OK(proc::write_file(folder.assignment(), json::dump(json::encode(assignment))));
  return proc::write_file(folder.launch(), json::dump(json::encode(launch)));
}

Result<void> LocalProvider::Impl::make_session(const EntryPtr& entry) {
  const local::LaunchRecord& launch = entry->launch;
  HELIO_CHECK_OK(places_.prepare());
  HELIO_CHECK_OK(proc::wipe(launch.temp_dir));  // of a node that had this place before
  HELIO_CHECK_OK(proc::make_folders(launch.temp_dir));
  if (launch.bind_temp_dir) HELIO_CHECK_OK(proc::make_folders(launch.head_temp_dir));
  return {};
}

proc::IsolatedOptions LocalProvider::Impl::start_options(const EntryPtr& entry, bool harvest) {
  const local::LaunchRecord& launch = entry->launch;
  proc::IsolatedOptions options;
  options.isolation = isolation_;
  options.boot_id = boot_id_;
  options.spawn.argv = {launch.agent, "--node-dir", entry->folder.path};
  options.spawn.cwd = entry->folder.path;
  options.spawn.stdout_file = entry->folder.log();
  options.spawn.env = {"PATH=" + from_environment("PATH", "/usr/local/bin:/usr/bin:/bin"), "HOME=" + entry->folder.path,
                       "LANG=" + from_environment("LANG", "C.UTF-8"), fmt::format("{}={}", proc::kHomeTag, launch.home_id)};
  if (const std::string zone = from_environment("TZ", ""); !zone.empty()) options.spawn.env.push_back("TZ=" + zone);
  if (launch.bind_temp_dir && isolation_ != proc::Isolation::sessions) {
    options.binds.push_back({.source = launch.temp_dir, .target = launch.head_temp_dir});
  }
  if (harvest) {
    options.spawn.argv.emplace_back("--harvest");
    return options;
  }
  // What carries the tag belongs to the node and dies with it; a harvester comes after.
  options.spawn.env.push_back(fmt::format("{}={}", proc::kNodeTag, entry->id.str()));
  options.lock_file = entry->folder.lock();
  options.record_file = entry->folder.record();
  if (!launch.cgroup.empty()) options.cgroup_procs = cgroups_->procs_files(cgroup_name(entry));
  return options;
}

Result<void> LocalProvider::Impl::start_agent(const EntryPtr& entry) {
  auto started = proc::spawn_isolated(loop_, start_options(entry, false), [gate = gate_, id = entry->id](proc::ExitStatus status) {
    pass(gate, [id, status](Impl& impl) { impl.on_exit(id, status); });
  });
  if (started) {
    {
      const std::lock_guard lock(mutex_);
      entry->process = std::move(*started);
    }
    set_stage(entry, Stage::running);
    emit(entry, model::ProviderState::running, fmt::format("process {}", entry->process->pid()));
    return {};
  }
  // An earlier daemon had started it after all, at its last moment. Then it is found, never started again.
  const ErrorCode code = started.error().code();
  if (code != ErrorCode::conflict && code != ErrorCode::already_exists) return fail(std::move(started).error());
  adopt(entry);
  if (entry->stage == Stage::settling) {
    settle(entry);
  } else {
    emit(entry, entry->fact);
  }
  return {};
}

}  // namespace helio::provider
