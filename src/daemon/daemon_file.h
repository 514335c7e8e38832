#pragma once
#include "base/error.h"
#include "base/json/json.h"
#include "model/home.h"

#include <cstdint>
#include <optional>
#include <string>

namespace helio::daemon {

/// <home>/daemon.json: where the running daemon is, for the CLI and for agents; after its end, where it was.
struct DaemonFile {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< with the boot id, tells whether `pid` is still that process
  std::string boot_id;
  std::string url;  ///< http://127.0.0.1:port
  std::string version;
  friend bool operator==(const DaemonFile&, const DaemonFile&) = default;
};

/// Replaced in one step. Errors: those of the file system.
Result<void> write_daemon_file(const model::Home& home, const DaemonFile& file);
/// daemon.json says exactly this.
bool is_written(const model::Home& home, const DaemonFile& file);
/// Port of the last start, so that clients and agents find the daemon where it was; empty when it is not known.
std::optional<std::uint16_t> former_port(const model::Home& home);

}  // namespace helio::daemon

HELIO_JSON(helio::daemon::DaemonFile)
