#include "cli/upload.h"

#include "cli/package.h"

#include <filesystem>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kPackageLimit = 100_MiB;  // the daemon's own default; it has the last word

struct Job {
  ApiClient& api;
  const std::string& base;
  std::vector<std::string> excludes;
  bool dry_run;
  const Report& report;
};

bool is_remote(std::string_view text) { return text.contains("://"); }

Result<void> send_package(const Job& job, const std::string& sha256, const std::string& file, const std::string& what) {
  if (job.dry_run) return {};
  const std::string target = "/v1/packages/" + sha256;
  HELIO_TRY(there, job.api.exists(target));
  if (there) {
    job.report(what + " (already uploaded)");
    return {};
  }
  job.report(what);
  return job.api.put_file(target, file);
}

/// The address of what was uploaded. `as_module` puts the folder's own name in front of its files, as Ray expects of py_modules.
Result<std::string> upload(const Job& job, const std::string& path, bool as_module) {
  const fs::path local = fs::path(path).is_absolute() ? fs::path(path) : fs::path(job.base) / path;
  std::error_code error;
  if (fs::is_regular_file(local, error)) {
    if (local.extension() != ".zip") {
      return fail(ErrorCode::invalid_argument, "{} is neither a folder nor a .zip{}", path,
                  local.extension() == ".whl" ? "; install wheels with --pip" : "");
    }
    HELIO_TRY(zip, inspect_zip(local.string(), kPackageLimit));
    HELIO_CHECK_OK(send_package(job, zip.sha256, local.string(), fmt::format("{}, {}", path, format_bytes(zip.size))));
    return "helio://packages/" + zip.sha256 + ".zip";
  }
  PackOptions options{.excludes = job.excludes, .limit = kPackageLimit};
  if (as_module) options.parent = fs::weakly_canonical(local, error).filename().string();
  HELIO_TRY(package, pack_folder(local.string(), options));
  HELIO_CHECK_OK(send_package(job, package.sha256, package.zip.path(),
                              fmt::format("{}: {} files, {} packed", path, package.files, format_bytes(package.size))));
  return "helio://packages/" + package.sha256 + ".zip";
}

}  // namespace

Result<void> upload_code(ApiClient& api, json::Object& spec, const std::string& base, const std::vector<std::string>& excludes,
                         bool dry_run, const Report& report) {
  json::Value* found = spec.if_contains("runtime_env");
  if (found == nullptr || !found->is_object()) return {};
  json::Object& runtime_env = found->get_object();
  Job job{api, base, excludes, dry_run, report};
  if (const json::Value* more = runtime_env.if_contains("excludes"); more != nullptr && more->is_array()) {
    for (const json::Value& pattern : more->get_array()) {
      if (pattern.is_string()) job.excludes.emplace_back(pattern.get_string());
    }
  }
  if (json::Value* dir = runtime_env.if_contains("working_dir"); dir != nullptr && dir->is_string() && !is_remote(dir->get_string())) {
    auto address = upload(job, std::string(dir->get_string()), false);
    if (!address) return fail(std::move(address).error().at("$.runtime_env.working_dir"));
    *dir = *address;
  }
  json::Value* modules = runtime_env.if_contains("py_modules");
  if (modules == nullptr || !modules->is_array()) return {};
  std::size_t index = 0;
  for (json::Value& module : modules->get_array()) {
    const std::string path = fmt::format("$.runtime_env.py_modules[{}]", index++);
    if (!module.is_string() || is_remote(module.get_string())) continue;
    auto address = upload(job, std::string(module.get_string()), true);
    if (!address) return fail(std::move(address).error().at(path));
    module = *address;
  }
  return {};
}

}  // namespace helio::cli
