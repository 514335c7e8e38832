// From a running agent to nothing: proof of death, last logs, wiping.

#include "base/log.h"
#include "proc/files.h"
#include "proc/sys_info.h"
#include "provider/local/impl.h"

#include <unistd.h>
#include <csignal>
#include <filesystem>

namespace helio::provider {
namespace {

constexpr Duration kProofRetry = 20ms;
constexpr Duration kProofRetryLater = 1s;
constexpr Duration kWipeRetry = 50ms;
constexpr Duration kWipeRetryLater = 5s;
constexpr int kQuickAttempts = 100;

}  // namespace

void LocalProvider::Impl::do_remove(const NodeId& node, Grace grace) {
  EntryPtr entry = find(node);
  if (!entry) {  // gone, or never made: say so again
    entry = std::make_shared<Entry>();
    entry->id = node;
    return emit(entry, model::ProviderState::absent, "nothing of it is here");
  }
  const bool again = entry->removal.has_value();
  {
    const std::lock_guard lock(mutex_);
    entry->removal = grace;
  }
  switch (entry->stage) {
    case Stage::requested:
    case Stage::ended:
      return wipe(entry);
    case Stage::settling:
      if (!again && !entry->harvesting) settle(entry);  // a taken over node may still wait for its observer
      return;
    case Stage::wiping:
      return;
    case Stage::running:
      break;
  }
  if (again) return;
  if (!entry->process) return;  // adopt() has not found its agent yet and goes on by itself
  if (const auto sent = entry->process->signal(SIGTERM); !sent && sent.error().code() != ErrorCode::not_found) {
    log::warn("node {}: {}", node.str(), sent.error().text());
  }
  work_.after(grace.term, [this, node] {
    const EntryPtr late = find(node);
    if (!late || late->stage != Stage::running || !late->process) return;
    if (const auto sent = late->process->signal(SIGKILL); !sent) log::warn("node {}: {}", node.str(), sent.error().text());
  });
}

void LocalProvider::Impl::on_exit(const NodeId& node, std::optional<proc::ExitStatus> status) {
  const EntryPtr entry = find(node);
  if (!entry || entry->stage != Stage::running) return;
  entry->exit = status;
  set_stage(entry, Stage::settling);
  settle(entry);
}

bool LocalProvider::Impl::prove_death(const EntryPtr& entry) {
  bool dead = true;
  for (const proc::TaggedProcess& process : proc::tagged_processes()) {
    if (process.node != entry->id.str() || (!process.home.empty() && process.home != entry->launch.home_id)) continue;
    dead = false;
    if (const auto sent = proc::signal_process(process.pid, process.start_ticks, SIGKILL); !sent) log::debug("{}", sent.error().text());
  }
  const auto free = proc::lock_is_free(entry->folder.lock());
  if (dead && free.value_or(false)) return true;
  // Without a tag in its environment a process is still in the node's cgroup.
  if (!entry->launch.cgroup.empty()) {
    if (const auto killed = cgroups_->kill(cgroup_name(entry)); !killed) log::warn("{}", killed.error().text());
  }
  return false;
}

void LocalProvider::Impl::settle(const EntryPtr& entry) {
  if (entry->harvesting) return;
  if (!prove_death(entry)) {
    if (++entry->attempts == kQuickAttempts) {
      log::error("node {}: its agent has ended, but processes of it do not", entry->id.str());
      emit(entry, model::ProviderState::running, "its agent has ended, but processes of it do not");
    }
    work_.after(entry->attempts < kQuickAttempts ? kProofRetry : kProofRetryLater, [this, entry] {
      if (entry->stage == Stage::settling) settle(entry);
    });
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    entry->attempts = 0;
    entry->final = local::read_final(entry->folder);
    entry->process.reset();
  }
  entry->clean = entry->final && !(entry->exit && entry->exit->signalled);
  model::ProviderFact fact = judge(entry);
  if (const auto end = proc::read_file(entry->folder.end())) {  // decided by an earlier daemon, that did not get to saving the logs
    if (auto record = json::parse_as<local::EndRecord>(*end, json::Unknown::ignore)) fact = std::move(record->fact);
  }
  entry->harvested = !worth_harvesting(entry);
  const local::EndRecord record{.fact = fact, .harvested = entry->harvested};
  if (const auto written = proc::write_file(entry->folder.end(), json::dump(json::encode(record))); !written) {
    log::warn("node {}: {}", entry->id.str(), written.error().text());
  }
  {
    const std::lock_guard lock(mutex_);
    entry->fact = std::move(fact);
    if (!entry->harvested) entry->fact.state = model::ProviderState::running;  // not over for those who list: its logs are being saved
  }
  if (entry->harvested) return conclude(entry);
  harvest(entry);
}

model::ProviderFact LocalProvider::Impl::judge(const EntryPtr& entry) {
  model::ProviderFact fact;
  fact.state = model::ProviderState::ended;
  fact.at = clock_.now();
  if (entry->exit) {
    fact.exit_code = entry->exit->code;
    fact.detail = entry->exit->signalled ? fmt::format("signal {}", entry->exit->signal) : fmt::format("exit {}", entry->exit->code);
  } else {
    fact.detail = entry->clean ? "left its final status" : "ended without a final status";
  }
  if (entry->clean || entry->removal) return fact;  // what our own teardown does is nobody's fault
  if (const auto record = proc::read_record(entry->folder.record()); record && record->boot_id != boot_id_) {
    fact.detail = "boot id differs: the machine was restarted";
    fact.cause = model::cause::kHostReboot;
    return fact;
  }
  const auto kills = entry->launch.cgroup.empty() ? Result<std::int64_t>(0) : proc::cgroup_oom_kills(entry->launch.cgroup);
  fact.cause = kills.value_or(0) > 0 ? model::cause::kNodeOom : model::cause::kAgentDied;
  if (kills.value_or(0) > 0) fact.detail += fmt::format(", {} processes killed at the memory limit", *kills);
  return fact;
}

bool LocalProvider::Impl::worth_harvesting(const EntryPtr& entry) const {
  if (entry->harvested) return false;
  if (entry->final && entry->final->logs_complete) return false;
  // An agent that never came up has nothing that its log in this folder does not say.
  return access(entry->launch.temp_dir.c_str(), F_OK) == 0 && access(entry->launch.agent.c_str(), X_OK) == 0;
}

void LocalProvider::Impl::harvest(const EntryPtr& entry) {
  entry->harvesting = true;
  const auto done = [gate = gate_, id = entry->id](proc::ExitStatus status) {
    pass(gate, [id, status](Impl& impl) {
      const EntryPtr self = impl.find(id);
      if (!self || !self->harvesting) return;
      self->harvesting = false;
      self->harvested = true;
      if (status.code != 0) log::warn("node {}: saving its last logs ended with {}", id.str(), status.code);
      {
        const std::lock_guard lock(impl.mutex_);
        self->final = local::read_final(self->folder);
      }
      impl.conclude(self);
    });
  };
  auto started = proc::spawn_isolated(loop_, start_options(entry, true), done);
  if (!started) {
    log::warn("node {}: its last logs cannot be saved: {}", entry->id.str(), started.error().text());
    entry->harvesting = false;
    entry->harvested = true;
    return conclude(entry);
  }
  work_.after(harvest_limit_, [this, id = entry->id, harvester = *started] {
    const EntryPtr self = find(id);
    if (!self || !self->harvesting) return;
    log::warn("node {}: saving its last logs took too long", id.str());
    if (const auto sent = harvester->signal(SIGKILL); !sent) log::debug("{}", sent.error().text());
  });
}

void LocalProvider::Impl::conclude(const EntryPtr& entry) {
  model::ProviderFact fact;
  {
    const std::lock_guard lock(mutex_);
    fact = entry->fact;
  }
  fact.state = model::ProviderState::ended;
  const local::EndRecord record{.fact = fact, .harvested = true};
  if (const auto written = proc::write_file(entry->folder.end(), json::dump(json::encode(record))); !written) {
    log::warn("node {}: {}", entry->id.str(), written.error().text());
  }
  set_stage(entry, Stage::ended);
  emit(entry, std::move(fact));
  if (entry->removal) wipe(entry);
}

void LocalProvider::Impl::wipe(const EntryPtr& entry) {
  set_stage(entry, Stage::wiping);
  if (entry->foreign) return wiped(entry, {});
  wiper_.post([this, entry, name = cgroup_name(entry)] {
    const local::LaunchRecord& launch = entry->launch;
    const auto all = [&]() -> Result<void> {
      if (!launch.cgroup.empty()) {
        HELIO_CHECK_OK(cgroups_->kill(name));
        HELIO_CHECK_OK(cgroups_->remove(name));
        // Made by a daemon that lived in another group than this one: the same by path.
        HELIO_CHECK_OK(proc::kill_cgroup(launch.cgroup));
        HELIO_CHECK_OK(proc::remove_cgroup(launch.cgroup));
      }
      // The folder with launch.json goes last and in one step: until then a restarted daemon knows what is left to wipe.
      if (launch.temp_dir.starts_with(places_.session_folder() + "/")) {
        HELIO_CHECK_OK(proc::wipe(launch.temp_dir));
        rmdir(launch.temp_dir.substr(0, launch.temp_dir.find_last_of('/')).c_str());  // the slot's, by the last of its nodes
      }
      const std::string& path = entry->folder.path;
      const std::size_t slash = path.find_last_of('/');
      const std::string aside = fmt::format("{}/.{}.gone", path.substr(0, slash), path.substr(slash + 1));
      HELIO_CHECK_OK(proc::wipe(aside));
      if (rename(path.c_str(), aside.c_str()) != 0 && errno != ENOENT) return fail(system_error(errno, "rename " + path));
      return proc::wipe(aside);
    };
    work_.post([this, entry, result = all()] { wiped(entry, result); });
  });
}

void LocalProvider::Impl::wiped(const EntryPtr& entry, const Result<void>& result) {
  if (!result) {
    const int attempt = ++entry->attempts;
    if (attempt == 20 || attempt == kQuickAttempts) log::warn("node {}: {}; trying on", entry->id.str(), result.error().text());
    work_.after(attempt < kQuickAttempts ? kWipeRetry : kWipeRetryLater, [this, entry, attempt] {
      wipe(entry);
      entry->attempts = attempt;
    });
    return;
  }
  emit(entry, model::ProviderState::absent, "ended and wiped");
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(entry->id);
  if (found != entries_.end() && found->second == entry) entries_.erase(found);
}

}  // namespace helio::provider
