#include "service/runtime_env.h"

#include "service/fields.h"
#include "service/resolve.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace helio::service {
namespace {

using json::Object;
using json::Value;

constexpr std::string_view kPackages = "helio://packages/";
constexpr std::array<std::string_view, 6> kRemote{"http", "https", "s3", "gs", "azure", "abfss"};
constexpr std::size_t kMaxBytes = 256 * 1024;

std::string_view text_of(const Value& value) { return value.get_string(); }

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> suffixes) {
  return std::ranges::any_of(suffixes, [&](std::string_view s) { return text.ends_with(s); });
}

Result<void> want_string(const Value& value, const std::string& path, std::string_view what) {
  if (!value.is_string()) return wrong(path, "expected {}", what);
  if (is_blank(text_of(value))) return wrong(path, "expected {}, got an empty text", what);
  if (has_nul(text_of(value))) return wrong(path, "a NUL byte is not allowed here");
  return {};
}

Result<void> want_strings(const Value& value, const std::string& path, std::string_view what) {
  if (!value.is_array()) return wrong(path, "expected a list of {}", what);
  for (std::size_t i = 0; i < value.get_array().size(); ++i) HELIO_CHECK_OK(want_string(value.get_array()[i], element(path, i), what));
  return {};
}

/// Where Ray fetches working_dir and py_modules from.
Result<void> check_uri(std::string_view uri, const std::string& path, bool module, const RuntimeEnvContext& context) {
  const auto colon = uri.find("://");
  if (colon == std::string_view::npos) {
    return wrong(path,
                 "'{}' is a path on your machine, which the cluster cannot see; `helio run` and `helio submit` upload it, and over HTTP "
                 "PUT /v1/packages/<sha256> does: refer to it as {}<sha256>.zip",
                 uri, kPackages);
  }
  const std::string_view scheme = uri.substr(0, colon);
  if (scheme == "helio") {
    const std::string_view digest = package_of_uri(uri);
    if (digest.empty()) return wrong(path, "expected {}<64 hex digits>.zip", kPackages);
    if (context.has_package && !context.has_package(digest)) {
      return fail(Error(ErrorCode::not_found, fmt::format("no package {}; upload it first: PUT /v1/packages/{}", digest, digest))
                      .at(path)
                      .with("package", std::string(digest)));
    }
    return {};
  }
  if (scheme == "gcs")
    return wrong(path, "gcs:// names a package inside one running cluster, and each attempt gets a new one; upload it instead");
  if (scheme == "file" || scheme == "local") {
    HELIO_TRY(folder, normal_folder(uri.substr(colon + 3), path));
    if (!is_below_any(folder, context.folders))
      return wrong(path, "{} is not below a folder that jobs may use ({})", folder, listed(context.folders));
    if (scheme == "local") return {};
  } else if (!is_one_of(scheme, kRemote)) {
    return wrong(path, "unknown scheme '{}://'; expected helio, https, http, s3, gs, azure, abfss, file or local", scheme);
  }
  const bool tar = ends_with_any(uri, {".tar.gz", ".tgz", ".tar.xz"});
  if (tar && !context.ray_version.empty() && !version_at_least(context.ray_version, "2.60.0")) {
    return wrong(path, "Ray {} of this image takes only .zip archives{}", context.ray_version, module ? " and wheels" : "");
  }
  if (!tar && !uri.ends_with(".zip") && !(module && uri.ends_with(".whl"))) {
    return wrong(path, "expected an archive that ends in .zip, .tar.gz, .tgz{} or .tar.xz", module ? ", .whl" : "");
  }
  return {};
}

Result<void> check_working_dir(const Value& value, const std::string& path, const RuntimeEnvContext& context) {
  HELIO_CHECK_OK(want_string(value, path, "a URI such as helio://packages/<sha256>.zip"));
  return check_uri(text_of(value), path, false, context);
}

Result<void> check_py_modules(const Value& value, const std::string& path, const RuntimeEnvContext& context) {
  HELIO_CHECK_OK(want_strings(value, path, "URIs"));
  for (std::size_t i = 0; i < value.get_array().size(); ++i) {
    HELIO_CHECK_OK(check_uri(text_of(value.get_array()[i]), element(path, i), true, context));
  }
  return {};
}

/// pip and uv: a list, or an object whose keys carry the tool's name.
Result<void> check_installer(const Value& value, const std::string& path, std::string_view tool) {
  if (value.is_string()) {
    return wrong(path, "a requirements file is on your machine, which the cluster cannot see; give its lines as a list");
  }
  if (value.is_array()) return want_strings(value, path, "requirements such as numpy==2.1");
  if (!value.is_object()) return wrong(path, "expected a list of requirements, or an object with 'packages'");
  const std::string check = fmt::format("{}_check", tool);
  const std::string version = fmt::format("{}_version", tool);
  const std::string options = tool == "uv" ? "uv_pip_install_options" : "pip_install_options";
  const Object& object = value.get_object();
  const Value* packages = object.if_contains("packages");
  if (packages == nullptr) return wrong(member(path, "packages"), "missing field");
  for (const auto& entry : object) {
    const std::string_view key = entry.key();
    const std::string at = member(path, key);
    if (key == "packages") {
      if (entry.value().is_string()) return wrong(at, "a requirements file is on your machine; give its lines as a list");
      HELIO_CHECK_OK(want_strings(entry.value(), at, "requirements such as numpy==2.1"));
    } else if (key == check) {
      if (!entry.value().is_bool()) return wrong(at, "expected true or false");
    } else if (key == version) {
      HELIO_CHECK_OK(want_string(entry.value(), at, "a version such as ==24.0"));
    } else if (key == options) {
      HELIO_CHECK_OK(want_strings(entry.value(), at, "options"));
    } else {
      return wrong(at, "unknown field; known are packages, {}, {}, {}", check, version, options);
    }
  }
  return {};
}

Result<void> check_conda(const Value& value, const std::string& path) {
  if (value.is_object()) return {};
  HELIO_CHECK_OK(want_string(value, path, "the name of an environment, an absolute folder, or an environment as an object"));
  const std::string_view text = text_of(value);
  if (ends_with_any(text, {".yml", ".yaml"})) {
    return wrong(path, "an environment file is on your machine, which the cluster cannot see; give its content as an object");
  }
  if (text.contains('/')) {
    HELIO_TRY(folder, normal_folder(text, path));
    static_cast<void>(folder);
  }
  return {};
}

Result<void> check_env_vars(const Value& value, const std::string& path) {
  if (!value.is_object()) return wrong(path, "expected an object of texts");
  for (const auto& entry : value.get_object()) {
    const std::string at = member(path, entry.key());
    if (!entry.value().is_string()) return wrong(at, "expected a string; put the value in quotes");
    HELIO_CHECK_OK(check_variable(entry.key(), text_of(entry.value()), at, at));
  }
  return {};
}

Result<void> check_config(const Value& value, const std::string& path) {
  if (!value.is_object()) return wrong(path, "expected an object");
  for (const auto& entry : value.get_object()) {
    const std::string_view key = entry.key();
    const std::string at = member(path, key);
    if (key == "setup_timeout_seconds") {
      const bool whole = entry.value().is_int64() || entry.value().is_uint64();
      const std::int64_t n = entry.value().is_int64() ? entry.value().get_int64() : 1;
      if (!whole || (n <= 0 && n != -1) || n > 1'000'000) return wrong(at, "expected seconds above 0, or -1 for no limit");
    } else if (key == "eager_install") {
      if (!entry.value().is_bool()) return wrong(at, "expected true or false");
    } else if (key == "log_files") {
      HELIO_CHECK_OK(want_strings(entry.value(), at, "file names"));
    } else {
      return wrong(at, "unknown field; known are setup_timeout_seconds, eager_install, log_files");
    }
  }
  return {};
}

Result<void> check_container(const Value& value, const std::string& path) {
  if (!value.is_object()) return wrong(path, "expected an object with 'image'");
  const Value* image = value.get_object().if_contains("image");
  if (image == nullptr) return wrong(member(path, "image"), "missing field");
  return want_string(*image, member(path, "image"), "the name of an image");
}

Result<void> check_hook(const Value& value, const std::string& path) {
  HELIO_CHECK_OK(want_string(value, path, "a dotted name such as my_module.setup"));
  const std::string_view text = text_of(value);
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  if (!std::ranges::all_of(text, word) || !text.contains('.') || text.starts_with('.') || text.ends_with('.')) {
    return wrong(path, "expected a dotted name such as my_module.setup, got '{}'", text);
  }
  return {};
}

Result<void> check_profiler(const Value& value, const std::string& path) {
  if (value.is_object()) return {};
  return want_string(value, path, "\"default\" or an object of options");
}

Result<void> check_bool(const Value& value, const std::string& path) {
  if (!value.is_bool()) return wrong(path, "expected true or false");
  return {};
}

constexpr std::string_view kKnown =
    "working_dir, py_modules, py_executable, excludes, pip, uv, conda, env_vars, config, image_uri, container, worker_process_setup_hook, "
    "nsight, "
    "rocprof_sys, java_jars";
/// Ray's own clients add these.
constexpr std::string_view kInternal = "_ray_commit, _ray_release, _inject_current_ray";

bool is_listed(std::string_view list, std::string_view key) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    if (list.substr(0, end) == key) return true;
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return false;
}

Result<void> check_field(std::string_view key, const Value& value, const std::string& path, const RuntimeEnvContext& context) {
  if (key == "working_dir") return check_working_dir(value, path, context);
  if (key == "py_modules") return check_py_modules(value, path, context);
  if (key == "py_executable") return want_string(value, path, "a command that starts workers");
  if (key == "excludes") return want_strings(value, path, "patterns");
  if (key == "pip" || key == "uv") return check_installer(value, path, key);
  if (key == "conda") return check_conda(value, path);
  if (key == "env_vars") return check_env_vars(value, path);
  if (key == "config") return check_config(value, path);
  if (key == "image_uri") return want_string(value, path, "the name of an image");
  if (key == "container") return check_container(value, path);
  if (key == "worker_process_setup_hook") return check_hook(value, path);
  if (key == "nsight" || key == "rocprof_sys" || key == "_nsight") return check_profiler(value, path);
  if (key == "java_jars") return want_strings(value, path, "URIs");
  if (key == "_ray_commit" || key == "_ray_release") return want_string(value, path, "a text");
  if (key == "_inject_current_ray") return check_bool(value, path);
  return wrong(path, "unknown field; known are {}", kKnown);
}

}  // namespace

bool is_runtime_env_field(std::string_view key) { return is_listed(kKnown, key) || is_listed(kInternal, key); }

std::string_view package_of_uri(std::string_view uri) {
  if (!uri.starts_with(kPackages) || !uri.ends_with(".zip") || uri.size() != kPackages.size() + 64 + 4) return {};
  const std::string_view digest = uri.substr(kPackages.size(), 64);
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::ranges::all_of(digest, hex) ? digest : std::string_view{};
}

bool version_at_least(std::string_view a, std::string_view b) {
  const auto numbers = [](std::string_view text) {
    std::array<int, 3> out{};
    for (int& number : out) {
      const char* end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      if (!text.starts_with('.')) break;
      text.remove_prefix(1);
    }
    return out;
  };
  return numbers(a) >= numbers(b);
}

Result<void> check_runtime_env(const json::Object& runtime_env, const std::string& path, const RuntimeEnvContext& context) {
  for (const auto& entry : runtime_env) {
    HELIO_CHECK_OK(check_field(entry.key(), entry.value(), member(path, entry.key()), context));
  }
  std::string_view installer;
  for (const std::string_view key : {"pip", "uv", "conda"}) {
    if (!runtime_env.contains(key)) continue;
    if (!installer.empty()) return wrong(member(path, key), "only one of pip, uv, conda is allowed, and {} is there too", installer);
    installer = key;
  }
  for (const std::string_view image : {"image_uri", "container"}) {
    if (!runtime_env.contains(image)) continue;
    for (const auto& entry : runtime_env) {
      const std::string_view key = entry.key();
      if (key != image && key != "config" && key != "env_vars") {
        return wrong(member(path, key), "beside {} only config and env_vars are allowed", image);
      }
    }
  }
  if (json::dump(Value(runtime_env)).size() > kMaxBytes) return wrong(path, "is larger than {} bytes as JSON", kMaxBytes);
  return {};
}

Result<void> check_runtime_env(const json::Object& runtime_env, const std::string& path) {
  return check_runtime_env(runtime_env, path, {});
}

}  // namespace helio::service
