#include "proc/sys_info.h"

#include "base/log.h"
#include "proc/cgroup.h"
#include "proc/files.h"
#include "proc/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>

namespace helio::proc {
namespace {

constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD of the kernel's sched.h

template <class T>
std::optional<T> number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// "MemTotal:       24684084 kB" of /proc/meminfo.
Bytes meminfo(std::string_view key) {
  const auto text = read_file("/proc/meminfo");
  if (!text) return {};
  const std::size_t at = text->find(fmt::format("{}:", key));
  if (at == std::string::npos) return {};
  return {number<std::int64_t>(std::string_view(*text).substr(at + key.size() + 1)).value_or(0) * 1024};
}

struct CloseFolder {
  void operator()(DIR* dir) const { closedir(dir); }
};

/// The lowest memory limit on the way from this process's group up to the root of the mount.
std::optional<Bytes> cgroup_memory_limit() {
  const auto mountinfo = read_file("/proc/self/mountinfo");
  const auto own = read_file("/proc/self/cgroup");
  if (!mountinfo || !own) return std::nullopt;
  std::optional<Bytes> least;
  for (const CgroupMount& mount : parse_cgroup_mounts(*mountinfo, *own)) {
    const bool v1_memory = std::ranges::find(mount.controllers, "memory") != mount.controllers.end();
    if (!mount.v2 && !v1_memory) continue;
    const char* file = mount.v2 ? "memory.max" : "memory.limit_in_bytes";
    for (std::string folder = mount.own; folder.size() > mount.mount_point.size();) {
      if (const auto text = read_file(folder + "/" + file)) {
        const auto value = number<std::int64_t>(*text);  // "max" is none
        if (value && (!least || *value < least->n)) least = Bytes{*value};
      }
      folder.resize(folder.find_last_of('/'));
    }
  }
  return least;
}

}  // namespace

std::int32_t cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<std::int32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));  // over 1024 CPUs
}

Bytes memory_total() {
  const Bytes physical = meminfo("MemTotal");
  const auto limit = cgroup_memory_limit();
  return limit ? std::min(physical, *limit) : physical;
}

Bytes memory_available() { return meminfo("MemAvailable"); }

Result<FsSpace> fs_space(const std::string& path) {
  struct statvfs info{};
  if (statvfs(path.c_str(), &info) != 0) return fail(system_error(errno, "file system of " + path));
  const auto block = static_cast<std::int64_t>(info.f_frsize);
  return FsSpace{.total = {block * static_cast<std::int64_t>(info.f_blocks)}, .free = {block * static_cast<std::int64_t>(info.f_bavail)}};
}

std::vector<NvidiaGpu> parse_nvidia_smi(std::string_view text) {
  std::vector<NvidiaGpu> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::size_t first = line.find(',');
    const std::size_t last = line.rfind(',');
    if (first == std::string_view::npos || last <= first) continue;
    const auto index = number<std::int32_t>(line.substr(0, first));
    const auto mebibytes = number<std::int64_t>(line.substr(last + 1));  // "[N/A]" on machines with unified memory
    std::string_view model = line.substr(first + 1, last - first - 1);
    while (model.starts_with(' ')) model.remove_prefix(1);
    if (!index || model.empty()) continue;
    out.push_back({.index = *index, .model = std::string(model), .memory = {mebibytes.value_or(0) << 20}});
  }
  return out;
}

std::vector<NvidiaGpu> nvidia_gpus() {
  if (access("/proc/driver/nvidia/version", R_OK) != 0 && access("/dev/nvidiactl", F_OK) != 0) return {};
  SpawnOptions options;
  options.argv = {"nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"};
  options.env = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib", "LC_ALL=C"};
  const auto text = run_and_capture(options, 10s);
  if (text) return parse_nvidia_smi(*text);
  log::warn("no word from nvidia-smi, so the models come from /proc and memory sizes are unknown: {}", text.error().text());
  std::vector<NvidiaGpu> out;
  const std::unique_ptr<DIR, CloseFolder> dir(opendir("/proc/driver/nvidia/gpus"));
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    const auto info = read_file(fmt::format("/proc/driver/nvidia/gpus/{}/information", entry->d_name));
    if (!info) continue;
    std::string model = "NVIDIA GPU";
    if (const std::size_t at = info->find("Model:"); at != std::string::npos) {
      const std::size_t from = info->find_first_not_of(" \t", at + 6);
      model = info->substr(from, info->find('\n', from) - from);
    }
    out.push_back({.index = static_cast<std::int32_t>(out.size()), .model = std::move(model), .memory = {}});
  }
  return out;
}

Result<ProcessStat> process_stat(pid_t pid) {
  auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return fail(ErrorCode::not_found, "no process {}", pid);
  // The name may hold blanks and parentheses: the last ')' ends it.
  const std::size_t open = text->find('(');
  const std::size_t close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= text->size()) {
    return fail(ErrorCode::not_found, "no process {}", pid);
  }
  std::vector<std::string_view> fields;  // fields[0] is field 3 of proc(5)
  std::string_view rest = std::string_view(*text).substr(close + 2);
  while (!rest.empty()) {
    const std::size_t end = rest.find(' ');
    fields.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  if (fields.size() < 22) return fail(ErrorCode::not_found, "no process {}", pid);
  const auto field = [&](std::size_t n) { return number<std::uint64_t>(fields[n - 3]).value_or(0); };
  ProcessStat out;
  out.pid = pid;
  out.comm = text->substr(open + 1, close - open - 1);
  out.state = fields[0].empty() ? '?' : fields[0][0];
  out.parent = static_cast<pid_t>(field(4));
  out.session = static_cast<pid_t>(field(6));
  out.cpu_ticks = field(14) + field(15);
  out.start_ticks = field(22);
  out.kernel_thread = (field(9) & kKernelThread) != 0;
  out.resident = {static_cast<std::int64_t>(field(24)) * sysconf(_SC_PAGESIZE)};
  return out;
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, CloseFolder> dir(opendir("/proc"));
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (const auto pid = number<pid_t>(name)) out.push_back(*pid);
  }
  return out;
}

std::vector<pid_t> children_of(pid_t parent, std::string_view comm) {
  std::vector<pid_t> out;
  for (const pid_t pid : all_pids()) {
    const auto stat = process_stat(pid);
    if (stat && stat->parent == parent && (comm.empty() || stat->comm == comm)) out.push_back(pid);
  }
  return out;
}

namespace {

/// The value of `name` in the NUL-separated `environ`.
std::optional<std::string> find_variable(std::string_view environ, std::string_view name) {
  while (!environ.empty()) {
    const std::size_t end = environ.find('\0');
    const std::string_view entry = environ.substr(0, end);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
    environ = end == std::string_view::npos ? std::string_view() : environ.substr(end + 1);
  }
  return std::nullopt;
}

}  // namespace

namespace {

/// In the middle of an exec a process shows no environment for some microseconds: one that has none is looked at again.
std::optional<std::string> settled_environ(pid_t pid) {
  constexpr useconds_t kPause = 500;
  for (int attempt = 0;; ++attempt) {
    auto environ = read_file(fmt::format("/proc/{}/environ", pid));
    if (!environ) return std::nullopt;
    if (!environ->empty() || attempt == 4) return std::move(*environ);
    usleep(kPause);
  }
}

}  // namespace

std::optional<std::string> environ_value(pid_t pid, std::string_view name) {
  const auto environ = settled_environ(pid);
  return environ ? find_variable(*environ, name) : std::nullopt;
}

std::vector<TaggedProcess> tagged_processes() {
  std::vector<TaggedProcess> out;
  const pid_t self = getpid();
  for (const pid_t pid : all_pids()) {
    if (pid == self) continue;
    struct stat owner{};
    if (stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0 || owner.st_uid != geteuid()) continue;
    const auto before = process_stat(pid);
    if (!before || before->state == 'Z' || before->kernel_thread) continue;
    const auto environ = settled_environ(pid);
    if (!environ) continue;
    auto node = find_variable(*environ, kNodeTag);
    if (!node || node->empty()) continue;
    const auto now = process_stat(pid);
    if (!now || now->start_ticks != before->start_ticks || now->state == 'Z') continue;
    out.push_back(
        {.pid = pid, .start_ticks = before->start_ticks, .node = std::move(*node), .home = find_variable(*environ, kHomeTag).value_or("")});
  }
  return out;
}

Result<void> signal_process(pid_t pid, std::uint64_t ticks, int signal_number) {
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return fail(system_error(errno, fmt::format("process {}", pid)));
  HELIO_TRY(found, start_ticks(pid));
  if (found != ticks) return fail(ErrorCode::not_found, "process {} has ended; its number is another's", pid);
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal_number, nullptr, 0) != 0) {
    return fail(system_error(errno, fmt::format("signal {} to process {}", signal_number, pid)));
  }
  return {};
}

}  // namespace helio::proc
