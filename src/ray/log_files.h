#pragma once
// Which files of a Ray session are logs, and what they are called for people.

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::ray {

struct LogName {
  std::string stream;  ///< "driver", or the file's name; [A-Za-z0-9._-]{1,200}
  std::string kind;    ///< driver, worker, ray
  int rotation = 0;    ///< 0: the file written now; n: its n-th predecessor (raylet.out.1)
};

/// What the file `name` of a session's `logs` folder (or of its `jobs` folder) is; empty for files that are not shipped.
std::optional<LogName> classify_log(std::string_view name, std::string_view submission_id);

/// The newest session folder below a temp dir: by listing, since its symlink is absolute and may lead into another node's folder.
/// Error not_found while there is none.
Result<std::string> find_session(const std::string& temp_dir);

/// Lines that Ray itself puts in front of the entrypoint's output.
bool is_rays_own_line(std::string_view line);

}  // namespace helio::ray
