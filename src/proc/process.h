#pragma once
// Child processes by pidfd: started without a shell, watched without polling, never waited for by pid alone.

#include "base/error.h"
#include "rt/event_loop.h"

#include <sys/types.h>
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
  std::string stdout_file;  ///< appended; empty: /dev/null
  std::string stderr_file;  ///< empty: as stdout
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
  /// Error not_found when it has ended.
  virtual Result<void> signal(int signal_number) = 0;
};

/// Starts a child; `on_exit` is called once on the loop when it ended and has been reaped. Errors: not_found (no such program),
/// permission_denied, resource_exhausted.
Result<std::shared_ptr<Process>> spawn(rt::EventLoop& loop, const SpawnOptions& options, std::function<void(ExitStatus)> on_exit);

/// Watches a process that is not our child (an agent found again after a restart). `start_ticks` (proc stat field 22) proves identity.
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
std::unique_ptr<Reaper> start_reaper(rt::EventLoop& loop);

}  // namespace helio::proc
