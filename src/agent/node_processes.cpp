#include "agent/node_processes.h"

#include "base/clock.h"
#include "proc/cgroup.h"
#include "proc/files.h"
#include "proc/process.h"
#include "proc/sys_info.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT: kill()
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace helio::agent {

namespace {

constexpr Bytes kFullBelow = 16_MiB;

/// "RssAnon:     1234 kB" in /proc/PID/status.
Bytes status_field(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) return {};
  std::string_view rest = status.substr(at + name.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::int64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return {kib << 10};
}

}  // namespace

NodeProcesses::NodeProcesses(bool first, std::string node) : first_(first), node_(std::move(node)) {}

std::vector<pid_t> NodeProcesses::all() const {
  std::vector<pid_t> out;
  if (!first_) {
    for (const proc::TaggedProcess& process : proc::tagged_processes()) {
      if (process.node == node_) out.push_back(process.pid);
    }
    return out;
  }
  const pid_t self = ::getpid();
  for (const pid_t pid : proc::all_pids()) {
    if (pid == self) continue;
    const auto stat = proc::process_stat(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') out.push_back(pid);
  }
  return out;
}

void NodeProcesses::kill_all() const {
  if (first_) {
    ::kill(-1, SIGKILL);  // everything in the namespace but its first process
    return;
  }
  for (const proc::TaggedProcess& process : proc::tagged_processes()) {
    // One that has ended meanwhile is what we want.
    if (process.node == node_) static_cast<void>(proc::signal_process(process.pid, process.start_ticks, SIGKILL));
  }
}

std::optional<pid_t> NodeProcesses::find_driver() const {
  for (const pid_t pid : all()) {
    const auto stat = proc::process_stat(pid);
    if (!stat || stat->session != pid) continue;
    const auto parent = proc::process_stat(stat->parent);
    // The kernel keeps 15 characters of "ray::JobSupervisor…".
    if (parent && parent->comm.starts_with("ray::JobSuper")) return pid;
  }
  return std::nullopt;
}

void NodeProcesses::kill_session(pid_t leader) {
  for (const pid_t pid : proc::all_pids()) {
    const auto stat = proc::process_stat(pid);
    if (stat && stat->session == leader) static_cast<void>(proc::signal_process(pid, stat->start_ticks, SIGKILL));
  }
}

RayChildren find_ray_children(pid_t ray_start) {
  RayChildren out;
  for (const pid_t pid : proc::children_of(ray_start)) {
    const auto stat = proc::process_stat(pid);
    if (!stat) continue;
    if (stat->comm == "raylet") {
      out.raylet = pid;
    } else if (stat->comm == "gcs_server") {
      out.gcs = pid;
    } else if (auto cmdline = proc::read_file("/proc/" + std::to_string(pid) + "/cmdline", 64U << 10U)) {
      // It renames itself later; the path of its script is what all versions start it with.
      if (cmdline->find("dashboard/dashboard.py") != std::string::npos) out.dashboard = pid;
    }
  }
  return out;
}

UsageMeter::UsageMeter(NodeProcesses processes, std::string cgroup, std::vector<std::string> folders)
    : processes_(std::move(processes)), cgroup_(std::move(cgroup)), folders_(std::move(folders)) {}

Bytes UsageMeter::memory() const {
  if (!cgroup_.empty()) {
    if (const auto used = proc::cgroup_memory_used(cgroup_)) return *used;
  }
  // Private pages of each, and shared memory once: all map the same object store.
  Bytes sum;
  Bytes shared;
  for (const pid_t pid : processes_.all()) {
    const auto status = proc::read_file("/proc/" + std::to_string(pid) + "/status", 64U << 10U);
    if (!status) continue;
    sum += status_field(*status, "RssAnon:");
    shared = std::max(shared, status_field(*status, "RssShmem:"));
  }
  return sum + shared;
}

model::NodeUsage UsageMeter::sample() {
  model::NodeUsage usage;
  const std::int64_t now = SystemClock::instance().mono().us;
  std::vector<std::pair<pid_t, std::uint64_t>> ticks;
  std::uint64_t used = 0;
  for (const pid_t pid : processes_.all()) {
    const auto stat = proc::process_stat(pid);
    if (!stat) continue;
    ++usage.processes;
    ticks.emplace_back(pid, stat->cpu_ticks);
    const auto before = std::lower_bound(ticks_.begin(), ticks_.end(), std::pair<pid_t, std::uint64_t>(pid, 0));
    const bool known = before != ticks_.end() && before->first == pid && before->second <= stat->cpu_ticks;
    used += stat->cpu_ticks - (known ? before->second : 0);
  }
  std::sort(ticks.begin(), ticks.end());
  if (sampled_us_ != 0 && now > sampled_us_) {
    const double seconds = static_cast<double>(now - sampled_us_) / 1e6;
    usage.cpu = static_cast<double>(used) / static_cast<double>(::sysconf(_SC_CLK_TCK)) / seconds;
  }
  ticks_ = std::move(ticks);
  sampled_us_ = now;
  usage.memory = memory();
  usage.disk = disk_;
  return usage;
}

Bytes UsageMeter::measure_disk() {
  namespace fs = std::filesystem;
  Bytes sum;
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end; !error && it != end;
         it.increment(error)) {
      struct stat st{};
      if (::lstat(it->path().c_str(), &st) == 0) sum += Bytes{static_cast<std::int64_t>(st.st_blocks) * 512};
    }
  }
  disk_ = sum;
  return sum;
}

bool UsageMeter::file_system_full() const {
  return std::any_of(folders_.begin(), folders_.end(), [](const std::string& folder) {
    const auto space = proc::fs_space(folder);
    return space && space->free < kFullBelow;
  });
}

}  // namespace helio::agent
