#pragma once
#include "base/json/json.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::service {

/// What the check of a runtime_env may look at beside the document.
struct RuntimeEnvContext {
  std::string ray_version;                            ///< of the image; empty: the newest rules
  std::vector<std::string> folders;                   ///< below which file:// and local:// are allowed
  std::function<bool(std::string_view)> has_package;  ///< by SHA-256; empty: not asked
};

/// Ray's runtime_env: fields, types, exclusions (its own checks and ours), before anything is started. Errors: invalid_argument or
/// not_found (package) at the path below `path`, which is where the document stands.
Result<void> check_runtime_env(const json::Object& runtime_env, const std::string& path, const RuntimeEnvContext& context);

/// A field that some Ray has, whatever its value.
bool is_runtime_env_field(std::string_view key);

/// SHA-256 of "helio://packages/<sha256>.zip"; empty when it is none.
std::string_view package_of_uri(std::string_view uri);

/// True when version `a` is at least `b`; both like "2.60.0", "3.0.0.dev0".
bool version_at_least(std::string_view a, std::string_view b);

}  // namespace helio::service
