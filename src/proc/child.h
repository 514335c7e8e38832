#pragma once
// Inside proc/: from clone to exec. The child shares the parent's memory until it execs (as vfork does), so everything that it
// needs is laid out before, and it allocates nothing.

#include "base/error.h"
#include "proc/files.h"
#include "proc/process.h"

#include <sys/types.h>
#include <string>
#include <vector>

namespace helio::proc::detail {

struct ChildPlan {
  std::string program;  ///< resolved path
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd = "/";
  std::string stdout_file;
  std::string stderr_file;
  int output_fd = -1;
  bool new_session = true;

  int namespaces = 0;  ///< CLONE_NEW* flags
  bool subreaper = false;
  std::string lock_file;
  std::string record_file;
  std::string boot_id;
  std::vector<std::string> cgroup_procs;
  std::vector<std::pair<std::string, std::string>> binds;
  bool only_probe = false;  ///< leaves with 0 where it would exec
};

struct Child {
  pid_t pid = 0;
  Fd pidfd;
};

/// Error codes by system_error(), but `conflict` for a taken lock. The message names the step. A child that failed has been reaped.
Result<Child> start_child(const ChildPlan& plan);

/// Hands a started child to the loop; see spawn().
Result<std::shared_ptr<Process>> watch_child(rt::EventLoop& loop, Child child, std::function<void(ExitStatus)> on_exit);
/// The part of a plan that comes from SpawnOptions, program found.
Result<ChildPlan> make_plan(const SpawnOptions& options);

/// Path of argv0 by the PATH in `env`.
Result<std::string> find_program(const std::string& argv0, const std::vector<std::string>& env);

// Children of this process that somebody here waits for. What the kernel calls a child is process-wide, and so is this table: it is
// how a Reaper tells an adopted zombie from one whose status is awaited.

/// How it ended, and forgets it. `wait`: blocks until it has; otherwise empty while it runs. Empty when its status is lost.
std::optional<ExitStatus> collect(const Child& child, bool wait);
/// Reaps every zombie: awaited ones keep their status for collect(), others are dropped.
void reap_all();

}  // namespace helio::proc::detail
