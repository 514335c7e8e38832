// A daemon that comes back: what the folders of its nodes say.

#include "base/log.h"
#include "proc/files.h"
#include "provider/local/impl.h"

#include <unistd.h>
#include <filesystem>
#include <system_error>

namespace helio::provider {
namespace {

constexpr Duration kRecordRetry = 20ms;
constexpr int kRecordAttempts = 100;

}  // namespace

void LocalProvider::Impl::take_over() {
  std::error_code ignored;
  for (const auto& folder : std::filesystem::directory_iterator(places_.home().nodes(), ignored)) {
    const std::string name = folder.path().filename().string();
    // Renamed for wiping by a daemon that did not get to its end.
    if (name.starts_with(".")) {
      wiper_.post([path = folder.path().string()] {
        if (const auto done = proc::wipe(path); !done) log::warn("{}", done.error().text());
      });
    } else {
      take_over_folder(folder.path().string());
    }
  }
  std::set<std::string> used;
  for (const EntryPtr& entry : entries()) used.insert(entry->launch.agent);
  if (agents_.current()) agents_.keep_only(used);
}

void LocalProvider::Impl::take_over_folder(const std::string& path) {
  auto entry = std::make_shared<Entry>();
  entry->folder.path = path;
  const auto text = proc::read_file(entry->folder.launch());
  auto launch = text ? json::parse_as<local::LaunchRecord>(*text, json::Unknown::ignore) : Result<local::LaunchRecord>(fail(text.error()));
  if (!launch || launch->node.empty()) {
    log::warn("{} has no readable launch.json; the next sweep removes it", path);
    return;
  }
  entry->launch = std::move(*launch);
  entry->id = entry->launch.node;
  entry->final = local::read_final(entry->folder);
  {
    const std::lock_guard lock(mutex_);
    entries_[entry->id] = entry;
  }
  if (const auto end = proc::read_file(entry->folder.end())) {
    if (auto record = json::parse_as<local::EndRecord>(*end, json::Unknown::ignore)) {
      entry->harvested = record->harvested;
      entry->fact = std::move(record->fact);
      if (entry->harvested) {
        entry->stage = Stage::ended;
        return;
      }
    }
  }
  adopt(entry);
}

void LocalProvider::Impl::adopt(const EntryPtr& entry) {
  const auto free = proc::lock_is_free(entry->folder.lock());
  const auto record = proc::read_record(entry->folder.record());
  if (free && *free) {
    if (!record && access(entry->folder.record().c_str(), F_OK) != 0) {
      return set_stage(entry, Stage::requested, model::ProviderState::unknown, "prepared, but not started");
    }
    // observe() or the next remove() goes on from here. Not over for those who list: its logs are to be saved first.
    return set_stage(entry, Stage::settling, model::ProviderState::running, "its agent has ended; its logs are being saved");
  }
  if (!record) {  // between its lock and its record
    set_stage(entry, Stage::running, model::ProviderState::running, "starting");
    return retry_adopt(entry);
  }
  auto watched = proc::watch_pid(loop_, record->pid, record->start_ticks,
                                 [gate = gate_, id = entry->id] { pass(gate, [id](Impl& impl) { impl.on_exit(id, std::nullopt); }); });
  if (!watched) {  // the agent is dead, and what it left behind holds its lock
    return set_stage(entry, Stage::settling, model::ProviderState::running, "its agent has ended; the rest is being ended");
  }
  {
    const std::lock_guard lock(mutex_);
    entry->process = std::move(*watched);
  }
  set_stage(entry, Stage::running, model::ProviderState::running, fmt::format("process {}", record->pid));
}

void LocalProvider::Impl::retry_adopt(const EntryPtr& entry) {
  if (++entry->attempts > kRecordAttempts) {
    log::error("node {}: somebody holds its lock, but no agent has recorded itself", entry->id.str());
    return set_stage(entry, Stage::settling, model::ProviderState::running, "its lock is held, but it has no agent");
  }
  work_.after(kRecordRetry, [this, entry] {
    adopt(entry);
    if (entry->stage == Stage::settling) return settle(entry);
    if (entry->stage != Stage::running || !entry->process || !entry->removal) return;
    const Grace grace = *entry->removal;  // asked for while there was nothing to signal yet
    entry->removal.reset();
    do_remove(entry->id, grace);
  });
}

}  // namespace helio::provider
