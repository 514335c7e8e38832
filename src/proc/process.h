#pragma once
// Child processes by pidfd: started without a shell, watched without polling, never waited for by pid alone.

#include "base/error.h"
#include "rt/event_loop.h"

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace helio::proc {

struct SpawnOptions {
  std::vector<std::string> argv;  ///< argv[0] is an absolute path or looked up in env's PATH
  std::vector<std::string> env;   ///< "K=V", complete: nothing is inherited
  std::string cwd = "/";
  std::string stdout_file;  ///< appended, made with mode 0600; empty: /dev/null
  std::string stderr_file;  ///< empty: as stdout
  int output_fd = -1;       ///< when >= 0, stdout and stderr go here (a pipe, a terminal) and not to files; stays the caller's
  bool new_session = true;
};

/// How it ended: exit code, or 128 + signal.
struct ExitStatus {
  int code = 0;
  bool signalled = false;
  int signal = 0;
};

class Process {
 public:
  virtual ~Process() = default;
  [[nodiscard]] virtual pid_t pid() const = 0;
  /// Error not_found when it has ended. Any thread.
  virtual Result<void> signal(int signal_number) = 0;
};

/// Starts a child; `on_exit` is called once on the loop when it ended and has been reaped, whether or not the Process is kept. No
/// descriptor but 0, 1 and 2 reaches the child. Returns when the program runs: a failed exec is an error here. Any thread.
/// Errors: not_found (no such program), permission_denied, resource_exhausted.
Result<std::shared_ptr<Process>> spawn(rt::EventLoop& loop, const SpawnOptions& options, std::function<void(ExitStatus)> on_exit);

/// Starts a child and waits for it on this thread; it is killed after `limit`. What it leaves in its session's first process group (a new
/// session is the default) is killed in either case. Gives its stdout, at most 1 MiB of it.
/// Errors: those of spawn(), deadline_exceeded, internal when it exits non-zero. For short tools, never on the loop.
Result<std::string> run_and_capture(const SpawnOptions& options, Duration limit);

/// Watches a process that is not our child (an agent found again after a restart). `start_ticks` (proc stat field 22) proves identity.
/// Errors: not_found when it has ended or the pid is another's by now. Any thread.
Result<std::shared_ptr<Process>> watch_pid(rt::EventLoop& loop, pid_t pid, std::uint64_t start_ticks, std::function<void()> on_exit);

/// Field 22 of /proc/PID/stat; not_found when there is no such process.
Result<std::uint64_t> start_ticks(pid_t pid);
/// /proc/sys/kernel/random/boot_id.
std::string boot_id();

/// For a PID 1: reaps adopted children so that no zombie stays; children started by spawn() keep their own exit status.
class Reaper {
 public:
  virtual ~Reaper() = default;
};
/// Takes SIGCHLD over for the life of the object. One per process; destroy it before the loop.
std::unique_ptr<Reaper> start_reaper(rt::EventLoop& loop);

}  // namespace helio::proc
