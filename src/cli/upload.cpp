#include "cli/upload.h"

#include "cli/package.h"

#include <filesystem>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kPackageLimit = 100_MiB;  // the daemon's own default; it has the last word

bool is_remote(std::string_view text) { return text.contains("://"); }

/// Where the daemon will have it.
std::string address_of(const Upload& upload) { return "helio://packages/" + upload.sha256 + ".zip"; }

/// `as_module` puts the folder's own name in front of its files, as Ray expects of py_modules.
Result<Upload> pack(const std::string& path, const std::string& base, const std::vector<std::string>& excludes, bool as_module) {
  const fs::path local = fs::path(path).is_absolute() ? fs::path(path) : fs::path(base) / path;
  std::error_code error;
  if (fs::is_regular_file(local, error)) {
    if (local.extension() != ".zip") {
      return fail(ErrorCode::invalid_argument, "{} is neither a folder nor a .zip{}", path,
                  local.extension() == ".whl" ? "; install wheels with --pip" : "");
    }
    HELIO_TRY(zip, inspect_zip(local.string(), kPackageLimit));
    return Upload{zip.sha256, local.string(), fmt::format("{}, {}", path, format_bytes(zip.size)), std::nullopt};
  }
  PackOptions options{.excludes = excludes, .limit = kPackageLimit};
  if (as_module) options.parent = fs::weakly_canonical(local, error).filename().string();
  HELIO_TRY(package, pack_folder(local.string(), options));
  std::string file = package.zip.path();
  std::string what = fmt::format("{}: {} files, {} packed", path, package.files, format_bytes(package.size));
  return Upload{std::move(package.sha256), std::move(file), std::move(what), std::move(package.zip)};
}

}  // namespace

Result<std::vector<Upload>> pack_code(json::Object& spec, const std::string& base, const std::vector<std::string>& excludes) {
  std::vector<Upload> uploads;
  json::Value* found = spec.if_contains("runtime_env");
  if (found == nullptr || !found->is_object()) return uploads;
  json::Object& runtime_env = found->get_object();
  std::vector<std::string> all_excludes = excludes;
  if (const json::Value* more = runtime_env.if_contains("excludes"); more != nullptr && more->is_array()) {
    for (const json::Value& pattern : more->get_array()) {
      if (pattern.is_string()) all_excludes.emplace_back(pattern.get_string());
    }
  }
  const auto take = [&](json::Value& value, const std::string& at, bool as_module) -> Result<void> {
    if (!value.is_string() || is_remote(value.get_string())) return {};
    auto upload = pack(std::string(value.get_string()), base, all_excludes, as_module);
    if (!upload) return fail(std::move(upload).error().at(at));
    value = address_of(*upload);
    uploads.push_back(std::move(*upload));
    return {};
  };
  if (json::Value* dir = runtime_env.if_contains("working_dir"); dir != nullptr) {
    HELIO_CHECK_OK(take(*dir, "$.runtime_env.working_dir", false));
  }
  json::Value* modules = runtime_env.if_contains("py_modules");
  if (modules == nullptr || !modules->is_array()) return uploads;
  std::size_t index = 0;
  for (json::Value& module : modules->get_array()) {
    HELIO_CHECK_OK(take(module, fmt::format("$.runtime_env.py_modules[{}]", index++), true));
  }
  return uploads;
}

Result<void> send_packages(ApiClient& api, const std::vector<Upload>& uploads, const Report& report) {
  for (const Upload& upload : uploads) {
    const std::string target = "/v1/packages/" + upload.sha256;
    HELIO_TRY(there, api.exists(target));
    report(there ? upload.what + " (already uploaded)" : upload.what);
    if (!there) HELIO_CHECK_OK(api.put_file(target, upload.file));
  }
  return {};
}

}  // namespace helio::cli
