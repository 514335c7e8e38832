#pragma once
// The daemon of a home as a process: which one it is, and whether it still runs.

#include "base/error.h"
#include "model/home.h"

#include <cstdint>
#include <string>

namespace helio::cli {

/// Content of <home>/daemon.json.
struct DaemonFile {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< with the boot id, tells whether `pid` is still that process
  std::string boot_id;
  std::string url;
  std::string version;
};
/// Error: not_found when no daemon has run here, internal when the file is damaged.
Result<DaemonFile> read_daemon_file(const model::Home& home);
/// The process that wrote the file lives. What listens at its URL otherwise is somebody else's.
bool is_alive(const DaemonFile& file);
/// The daemon of this home that runs now. Error: unavailable when none does.
Result<DaemonFile> running_daemon(const model::Home& home);

}  // namespace helio::cli
