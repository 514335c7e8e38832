#pragma once
#include "base/error.h"
#include "model/daemon_file.h"
#include "model/home.h"

#include <cstdint>
#include <optional>

namespace helio::daemon {

/// Replaced in one step. Errors: those of the file system.
Result<void> write_daemon_file(const model::Home& home, const model::DaemonFile& file);
/// daemon.json says exactly this.
bool is_written(const model::Home& home, const model::DaemonFile& file);
/// Port of the last start, so that clients and agents find the daemon where it was; empty when it is not known.
std::optional<std::uint16_t> former_port(const model::Home& home);

}  // namespace helio::daemon
