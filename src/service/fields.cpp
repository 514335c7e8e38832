#include "service/fields.h"

#include <algorithm>
#include <array>

namespace helio::service {
namespace {

bool alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool plain(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) { return alnum(c) || c == '_' || c == '-'; });
}

bool label_text(std::string_view text) {
  return !text.empty() && text.size() <= 63 && alnum(text.front()) && alnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool label_prefix(std::string_view text) {
  return !text.empty() && text.size() <= 253 && alnum(text.front()) && alnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return (alnum(c) && !(c >= 'A' && c <= 'Z')) || c == '-' || c == '.'; });
}

/// What heliostat or Ray itself sets on every node: another value would break the cluster, not configure it.
constexpr std::array<std::string_view, 22> kReserved{
    "RAY_ADDRESS",
    "RAY_API_SERVER_ADDRESS",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_TOKEN_PATH",
    "RAY_CLOUD_INSTANCE_ID",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S",
    "RAY_JOB_CONFIG_JSON_ENV_VAR",
    "RAY_JOB_ID",
    "RAY_JOB_STOP_SIGNAL",
    "RAY_JOB_STOP_WAIT_TIME_S",
    "RAY_JOB_SUBMISSION_ID",
    "RAY_NODE_ID",
    "RAY_NODE_TYPE_NAME",
    "RAY_OVERRIDE_LABELS",
    "RAY_OVERRIDE_RESOURCES",
    "RAY_RAYLET_PID",
    "RAY_SESSION_NAME",
    "RAY_START_HOOK",
    "RAY_TMPDIR",
    "AUTOSCALER_METRIC_PORT",
    "DASHBOARD_METRIC_PORT",
};

}  // namespace

std::string member(std::string_view path, std::string_view key) {
  return plain(key) ? fmt::format("{}.{}", path, key) : fmt::format("{}['{}']", path, key);
}
std::string element(std::string_view path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

bool has_nul(std::string_view text) { return text.contains('\0'); }
bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}
bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

Result<void> check_label_key(std::string_view key, const std::string& path) {
  const auto slash = key.find('/');
  const bool ok =
      slash == std::string_view::npos ? label_text(key) : label_prefix(key.substr(0, slash)) && label_text(key.substr(slash + 1));
  if (!ok) {
    return wrong(path,
                 "'{}' is not a label key; expected letters, digits, '-', '_', '.' (at most 63, first and last a letter or digit), "
                 "with an optional 'domain/' in front",
                 key);
  }
  if (key.starts_with("ray.io/")) return wrong(path, "labels below ray.io/ are set by Ray and heliostat; take another prefix");
  return {};
}

Result<void> check_label_value(std::string_view value, const std::string& path) {
  if (value.empty() || label_text(value)) return {};
  return wrong(path, "'{}' is not a label value; expected at most 63 letters, digits, '-', '_', '.', first and last a letter or digit",
               value);
}

Result<void> check_variable(std::string_view name, std::string_view value, const std::string& name_path, const std::string& value_path) {
  if (name.empty()) return wrong(name_path, "a variable needs a name");
  if (has_nul(name)) return wrong(name_path, "the name of a variable cannot hold a NUL byte");
  if (name.contains('=')) {
    return wrong(name_path, "the name of a variable cannot hold '='; put what follows it into the value: name '{}'",
                 name.substr(0, name.find('=')));
  }
  if (name.size() > 256) return wrong(name_path, "the name has {} bytes; at most 256 are allowed", name.size());
  if (is_one_of(name, kReserved) || name.starts_with("HELIOSTAT_")) {
    return wrong(name_path, "{} is set by heliostat on every node and cannot be changed; other variables, also RAY_*, can be set", name);
  }
  if (has_nul(value)) return wrong(value_path, "the value of a variable cannot hold a NUL byte");
  if (value.size() > 100 * 1024) return wrong(value_path, "the value has {} bytes; at most 102400 are allowed", value.size());
  return {};
}

Result<std::string> normal_folder(std::string_view text, const std::string& path) {
  if (!text.starts_with('/')) return wrong(path, "expected an absolute path such as /data, got '{}'", text);
  if (has_control(text)) return wrong(path, "a path cannot hold control characters");
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find_first_not_of('/', at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part == "." || part == "..") return wrong(path, "a path cannot hold '{}'; write it out", part);
    out.append("/").append(part);
    at = end;
  }
  return out.empty() ? std::string("/") : out;
}

bool is_below(std::string_view folder, std::string_view root) {
  return root == "/" || (folder.starts_with(root) && (folder.size() == root.size() || folder[root.size()] == '/'));
}

bool is_below_any(std::string_view folder, const std::vector<std::string>& roots) {
  return std::ranges::any_of(roots, [&](std::string_view root) {
    while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
    return is_below(folder, root);
  });
}

bool is_one_of(std::string_view text, std::span<const std::string_view> words) { return std::ranges::find(words, text) != words.end(); }

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace helio::service
