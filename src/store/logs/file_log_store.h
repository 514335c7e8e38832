#pragma once
// Log streams as files: <dir>/<attempt>/<node>/<stream>.log, .idx (offset and time, one entry per MiB or second), .meta (JSON), and
// .zst instead of .log once sealed (zstd's seekable format: frames of 1 MiB and a seek table, so `zstd -d` reads it too).

#include "base/clock.h"
#include "base/error.h"
#include "store/log_store.h"

#include <memory>
#include <string>
#include <utility>

namespace helio::store {

/// Makes `dir` if it is absent. Nothing is read until it is asked for; at most 128 descriptors stay open.
Result<std::unique_ptr<LogStore>> open_file_logs(std::string dir);
/// Each append brings its own time, so there is no need for a clock.
inline Result<std::unique_ptr<LogStore>> open_file_logs(std::string dir, const Clock& /*clock*/) { return open_file_logs(std::move(dir)); }

}  // namespace helio::store
