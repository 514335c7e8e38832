#pragma once
// A process that is the first of its own PID and mount namespace, as far as this host allows.

#include "proc/process.h"

#include <string>
#include <string_view>
#include <vector>

namespace helio::proc {

/// Strongest first.
enum class Isolation {
  namespaces,       ///< as root: CLONE_NEWPID | CLONE_NEWNS
  user_namespaces,  ///< as an ordinary user: the same inside a user namespace that maps this user to itself
  sessions,         ///< an own session and a child subreaper
};

/// "namespaces", "user namespaces", "process groups".
std::string_view to_string(Isolation isolation);

struct IsolationSupport {
  Isolation best = Isolation::sessions;
  std::string lost;  ///< empty, or what is missing on this host and why, for people
};

/// Tries them with a child that leaves at once; the answer is kept for the life of this process. Any thread.
const IsolationSupport& probe_isolation();

struct BindMount {
  std::string source;
  std::string target;  ///< must exist
};

struct IsolatedOptions {
  SpawnOptions spawn;
  Isolation isolation = Isolation::namespaces;
  /// When set: the child takes an exclusive flock on this file before anything else and holds it for life, over exec and in every
  /// process that it leaves the descriptor to. Taken by another: error `conflict`, nothing was started.
  std::string lock_file;
  /// When set: the child writes {"pid","start_ticks","boot_id"} here as seen from outside, after the lock and before exec. A file
  /// that is there already stays as it is: error `already_exists`, nothing was started. So one record means: at most one start.
  std::string record_file;
  std::string boot_id;                    ///< for the record; empty: this machine's
  std::vector<std::string> cgroup_procs;  ///< cgroup.procs files that the child joins
  std::vector<BindMount> binds;           ///< in its own mount namespace; refused with Isolation::sessions
};

/// Like spawn(). With a PID namespace, the end of this process is the end of everything that descends from it.
Result<std::shared_ptr<Process>> spawn_isolated(rt::EventLoop& loop, const IsolatedOptions& options,
                                                std::function<void(ExitStatus)> on_exit);

/// What a record file says.
struct ProcessRecord {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id;
};
/// Errors: not_found, internal when it is not a record.
Result<ProcessRecord> read_record(const std::string& path);

/// True when nobody holds the flock of this file; also when there is no such file.
Result<bool> lock_is_free(const std::string& path);

/// Makes this process the parent of its orphaned descendants, as a PID 1 is.
Result<void> become_subreaper();

}  // namespace helio::proc
