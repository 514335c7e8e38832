#pragma once
// The daemon of a home as a process: which one it is, and whether it still runs.

#include "base/error.h"
#include "model/daemon_file.h"
#include "model/home.h"

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <string>

namespace helio::cli {

/// Error: not_found when no daemon has run here, internal when the file is damaged.
Result<model::DaemonFile> read_daemon_file(const model::Home& home);
/// The process that wrote the file lives. What listens at its URL otherwise is somebody else's.
bool is_alive(const model::DaemonFile& file);
/// The daemon of this home that runs now. Error: unavailable when none does.
Result<model::DaemonFile> running_daemon(const model::Home& home);

/// Who holds the lock of a data folder, whatever daemon.json says.
struct LockHolder {
  pid_t pid = 0;  ///< 0: it cannot be told, or is no heliostatd that has this lock open
  std::uint64_t start_ticks = 0;
  bool stopped = false;  ///< by SIGSTOP or a debugger: it answers nobody
  std::string text;      ///< what it wrote into the lock
};
/// None: nobody holds it.
std::optional<LockHolder> lock_holder(const model::Home& home);
/// What to tell the user of a holder that is stopped, or of one that cannot be told.
Error no_answer(const model::Home& home, const LockHolder& holder);

}  // namespace helio::cli
