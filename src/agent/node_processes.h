#pragma once
// The processes of this node as /proc shows them. Synchronous; any thread.

#include "base/units.h"
#include "model/agent_protocol.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace helio::agent {

/// Which processes are ours: all that this PID namespace shows, or those that carry the node's tag.
class NodeProcesses {
 public:
  /// `first`: this process is PID 1, so everything else in sight belongs to the node.
  NodeProcesses(bool first, std::string node);

  /// Without this process and zombies.
  [[nodiscard]] std::vector<pid_t> all() const;
  [[nodiscard]] bool any() const { return !all().empty(); }
  /// SIGKILL to all of them.
  void kill_all() const;
  /// The shell of the entrypoint: leader of a session, child of Ray's job supervisor.
  [[nodiscard]] std::optional<pid_t> find_driver() const;
  /// SIGKILL to the session that this process leads.
  static void kill_session(pid_t leader);

 private:
  bool first_;
  std::string node_;
};

/// Direct children of `ray start` that matter, by name.
struct RayChildren {
  std::optional<pid_t> raylet;
  std::optional<pid_t> gcs;
  std::optional<pid_t> dashboard;
};
RayChildren find_ray_children(pid_t ray_start);

/// Measures what a node uses. One thread at a time.
class UsageMeter {
 public:
  /// `cgroup` may be empty: then memory is summed up over the processes.
  UsageMeter(NodeProcesses processes, std::string cgroup, std::vector<std::string> folders);
  /// CPU since the call before; the disk figure is that of the last measure_disk().
  model::NodeUsage sample();
  /// Memory alone.
  [[nodiscard]] Bytes memory() const;
  /// Walks the folders: may take long.
  Bytes measure_disk();
  /// The file system of the folders is as good as full.
  [[nodiscard]] bool file_system_full() const;

 private:
  NodeProcesses processes_;
  std::string cgroup_;
  std::vector<std::string> folders_;
  std::vector<std::pair<pid_t, std::uint64_t>> ticks_;  ///< CPU of each process at the last sample, by pid
  std::int64_t sampled_us_ = 0;
  Bytes disk_;
};

}  // namespace helio::agent
