#pragma once
#include "base/json/json.h"
#include "cli/api_client.h"

#include <functional>
#include <string>
#include <vector>

namespace helio::cli {

/// Said about each upload, for people.
using Report = std::function<void(const std::string&)>;

/// Packs and uploads every local folder or zip that runtime_env names (working_dir, py_modules), once per content, and puts its
/// address in its place. `base` is what relative paths are relative to. With `dry_run` nothing is sent.
Result<void> upload_code(ApiClient& api, json::Object& spec, const std::string& base, const std::vector<std::string>& excludes,
                         bool dry_run, const Report& report);

}  // namespace helio::cli
