#pragma once
// Limits of a group of processes: cgroup v2, v1, or none.

#include "base/error.h"
#include "base/units.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace helio::proc {

struct CgroupLimits {
  Bytes memory;           ///< 0: none. Swap is not granted on top
  MilliCpu cpu_quota;     ///< hard ceiling; 0: none
  MilliCpu cpu_weight;    ///< share under contention, relative to the siblings'; 0: the kernel's default
  std::int64_t pids = 0;  ///< processes and threads; 0: none
};

enum class CgroupKind { v2, v1, none };

/// Makes groups below one parent folder, which lies below this process's own cgroup: what contains us contains our children.
/// Names are [A-Za-z0-9._-]+. All calls are idempotent and synchronous; any thread. The parent folder goes with the driver when it is
/// empty.
class CgroupDriver {
 public:
  virtual ~CgroupDriver() = default;
  [[nodiscard]] virtual CgroupKind kind() const = 0;
  /// "cgroup v2", "cgroup v1 (memory, cpu)", or "watching (why)".
  [[nodiscard]] virtual std::string about() const = 0;
  /// Makes the group, or sets its limits anew.
  virtual Result<void> create(const std::string& name, const CgroupLimits& limits) = 0;
  /// Its folder of the memory controller (v2: the only one); empty without a driver.
  [[nodiscard]] virtual std::string folder(const std::string& name) const = 0;
  /// Files to which a process writes "0" to join.
  [[nodiscard]] virtual std::vector<std::string> procs_files(const std::string& name) const = 0;
  /// SIGKILL to everything inside; processes may still be on their way out afterwards.
  virtual Result<void> kill(const std::string& name) = 0;
  /// Errors: unavailable while processes are inside. A group that is not there is removed already.
  virtual Result<void> remove(const std::string& name) = 0;
  [[nodiscard]] virtual std::vector<std::string> list() const = 0;
};

/// Finds out what can be written here. `parent` names the folder for all groups, such as "heliostat-1a2b3c4d".
std::unique_ptr<CgroupDriver> make_cgroup_driver(const std::string& parent);
/// One that limits nothing.
std::unique_ptr<CgroupDriver> make_no_cgroup_driver(const std::string& why);

/// For who is inside (an agent): `folder` as CgroupDriver::folder gave it, v2 or v1.
/// How many processes the kernel killed there because the limit was reached.
Result<std::int64_t> cgroup_oom_kills(const std::string& folder);
Result<Bytes> cgroup_memory_used(const std::string& folder);
/// By folder, when it was made by a driver that lived elsewhere; otherwise as CgroupDriver::kill and remove.
Result<void> kill_cgroup(const std::string& folder);
Result<void> remove_cgroup(const std::string& folder);

/// Where a controller is mounted and where this process is in it; parsed apart so that it can be tested.
struct CgroupMount {
  bool v2 = false;
  std::vector<std::string> controllers;  ///< v1: of this hierarchy
  std::string mount_point;
  std::string own;  ///< folder of this process's group, below mount_point
};
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, std::string_view self_cgroup);

}  // namespace helio::proc
