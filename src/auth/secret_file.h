#pragma once
#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace helio::auth {

/// Content of a file that only its owner may read; nullopt when there is none. At most 4 KiB.
/// Error: precondition_failed when group or others may read or write it, or when it belongs to somebody else.
Result<std::optional<std::string>> read_secret_file(const std::string& path);

/// Makes or replaces the file with mode 0600, whole or not at all, and durable on return.
Result<void> write_secret_file(const std::string& path, std::string_view content);

}  // namespace helio::auth
