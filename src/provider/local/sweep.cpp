// Whatever carries the id of a node that nobody knows any more: processes, folders, cgroups. Only what is provably of this home.

#include "base/log.h"
#include "proc/files.h"
#include "proc/sys_info.h"
#include "provider/local/impl.h"

#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <system_error>

namespace helio::provider {

Result<std::vector<std::string>> LocalProvider::Impl::sweep(const std::vector<NodeId>& live_nodes) {
  const std::set<NodeId> live(live_nodes.begin(), live_nodes.end());
  std::vector<std::string> found;
  const MonoTime now = clock_.mono();
  for (const EntryPtr& entry : entries()) {
    bool spare = false;
    {
      const std::lock_guard lock(mutex_);
      spare = live.contains(entry->id) || entry->stage == Stage::wiping || entry->removal ||
              (entry->asked && now - *entry->asked < sweep_spares_);
    }
    if (spare) continue;
    found.push_back("node " + entry->id.str());
    work_.post([this, entry] {
      entry->harvested = true;  // whoever would take its logs does not know it
      do_remove(entry->id, Grace{.term = 0s});
    });
  }
  sweep_processes(live, found);
  sweep_cgroups(found);
  sweep_sessions(found);
  sweep_folders(found);
  for (const std::string& what : found) log::info("orphan: {}", what);
  return found;
}

void LocalProvider::Impl::sweep_processes(const std::set<NodeId>& live, std::vector<std::string>& found) {
  for (const proc::TaggedProcess& process : proc::tagged_processes()) {
    // Another home's nodes, and Ray nodes that are none of heliostat's, carry ids too: without our mark they are not ours to end.
    const NodeId node(process.node);
    if (process.home != places_.home_id() || live.contains(node) || find(node)) continue;
    if (proc::signal_process(process.pid, process.start_ticks, SIGKILL)) {
      found.push_back(fmt::format("process {} of node {}", process.pid, process.node));
    }
  }
}

void LocalProvider::Impl::sweep_cgroups(std::vector<std::string>& found) {
  std::set<std::string> used;
  const std::vector<std::string> there = cgroups_->list();  // before the table: a group that comes later is a known node's
  for (const EntryPtr& entry : entries()) used.insert(cgroup_name(entry));
  for (const std::string& name : there) {
    if (used.contains(name)) continue;
    if (!cgroups_->kill(name)) continue;
    const auto removed = cgroups_->remove(name);  // what is still dying is for the next sweep
    if (removed || removed.error().code() == ErrorCode::unavailable) found.push_back("cgroup " + name);
  }
}

void LocalProvider::Impl::sweep_sessions(std::vector<std::string>& found) {
  std::vector<std::string> there;
  std::error_code ignored;
  for (const auto& slot : std::filesystem::directory_iterator(places_.session_folder(), ignored)) {
    if (!slot.is_directory(ignored) || slot.is_symlink(ignored)) continue;
    for (const auto& node : std::filesystem::directory_iterator(slot.path(), ignored)) there.push_back(node.path().string());
  }
  std::set<std::string> used;
  for (const EntryPtr& entry : entries()) {
    const std::lock_guard lock(mutex_);
    used.insert(entry->launch.temp_dir);
    used.insert(entry->launch.head_temp_dir);
  }
  for (const std::string& path : there) {
    if (used.contains(path)) continue;
    if (const auto wiped = proc::wipe(path); !wiped) {
      log::warn("{}", wiped.error().text());
      continue;
    }
    rmdir(path.substr(0, path.find_last_of('/')).c_str());
    found.push_back("folder " + path);
  }
}

void LocalProvider::Impl::sweep_folders(std::vector<std::string>& found) {
  std::vector<std::string> there;
  std::error_code ignored;
  for (const auto& folder : std::filesystem::directory_iterator(places_.home().nodes(), ignored)) there.push_back(folder.path().string());
  std::set<std::string> used;
  for (const EntryPtr& entry : entries()) used.insert(entry->folder.path);
  for (const std::string& path : there) {
    // Names with a dot are being wiped by `wiper_`.
    if (used.contains(path) || path[path.find_last_of('/') + 1] == '.') continue;
    const local::NodeFolder folder{path};
    if (!proc::lock_is_free(folder.lock()).value_or(false)) {
      const auto record = proc::read_record(folder.record());
      if (record && record->boot_id == boot_id_ && proc::signal_process(record->pid, record->start_ticks, SIGKILL)) {
        found.push_back(fmt::format("process {} of {}", record->pid, path));
      }
      continue;  // wiped when it is dead, by the next sweep
    }
    if (proc::wipe(path)) found.push_back("folder " + path);
  }
}

}  // namespace helio::provider
