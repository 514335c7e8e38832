#pragma once
// What this machine has and what runs on it, from /proc and /sys. Synchronous; any thread.

#include "base/error.h"
#include "base/units.h"

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::proc {

/// CPUs that this process may run on.
std::int32_t cpu_count();
/// Physical memory, or what this process's own cgroups allow if that is less.
Bytes memory_total();
Bytes memory_available();

struct FsSpace {
  Bytes total;
  Bytes free;  ///< for this user
};
/// Of the file system that holds `path`; "/dev/shm" for shared memory.
Result<FsSpace> fs_space(const std::string& path);

struct NvidiaGpu {
  std::int32_t index = 0;
  std::string model;
  Bytes memory;
};
/// Empty without a driver. May take a second (nvidia-smi).
std::vector<NvidiaGpu> nvidia_gpus();
/// Lines of `nvidia-smi --query-gpu=index,name,memory.total --format=csv,noheader,nounits`.
std::vector<NvidiaGpu> parse_nvidia_smi(std::string_view text);

/// One line of /proc/PID/stat.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';  ///< 'Z' zombie
  std::string comm;
  pid_t session = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t cpu_ticks = 0;  ///< user + system, in units of sysconf(_SC_CLK_TCK)
  Bytes resident;
  bool kernel_thread = false;
};
/// Error not_found when it has ended.
Result<ProcessStat> process_stat(pid_t pid);
/// All processes that this /proc shows.
std::vector<pid_t> all_pids();
/// Direct children; with `comm`, only those of that name (/proc/PID/comm).
std::vector<pid_t> children_of(pid_t parent, std::string_view comm = {});

/// A variable in a process's initial environment; empty when it has none, ended, or is another user's.
std::optional<std::string> environ_value(pid_t pid, std::string_view name);

/// A process of this user that carries the tag of a node (RAY_CLOUD_INSTANCE_ID).
struct TaggedProcess {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string node;
  std::string home;  ///< HELIOSTAT_HOME_ID, may be empty
};
inline constexpr std::string_view kNodeTag = "RAY_CLOUD_INSTANCE_ID";
inline constexpr std::string_view kHomeTag = "HELIOSTAT_HOME_ID";
/// All but zombies and this process itself.
std::vector<TaggedProcess> tagged_processes();

/// Sends a signal by pidfd after its identity has been checked. Error not_found when that process has ended.
Result<void> signal_process(pid_t pid, std::uint64_t start_ticks, int signal_number);

}  // namespace helio::proc
