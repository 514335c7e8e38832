#pragma once
#include "base/json/json.h"
#include "cli/api_client.h"
#include "cli/local_file.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace helio::cli {

/// A package that a job names.
struct Upload {
  std::string sha256;
  std::string file;
  std::string what;              ///< for people: what was packed, with its size
  std::optional<TempFile> made;  ///< holds `file` when it was packed here
};

/// Packs every local folder or zip that runtime_env names (working_dir, py_modules) and puts its address in its place; sends nothing.
/// `base` is what relative paths are relative to.
Result<std::vector<Upload>> pack_code(json::Object& spec, const std::string& base, const std::vector<std::string>& excludes);

/// Said about each upload, for people.
using Report = std::function<void(const std::string&)>;
/// Uploads what the daemon does not have yet.
Result<void> send_packages(ApiClient& api, const std::vector<Upload>& uploads, const Report& report);

}  // namespace helio::cli
