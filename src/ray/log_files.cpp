#include "ray/log_files.h"

#include <array>
#include <charconv>
#include <filesystem>

namespace helio::ray {

namespace {

/// Splits "raylet.out.2" into "raylet.out" and 2.
std::pair<std::string_view, int> split_rotation(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size()) return {name, 0};
  int number = 0;
  const auto [end, error] = std::from_chars(name.data() + dot + 1, name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number <= 0 || number > 99) return {name, 0};
  return {name.substr(0, dot), number};
}

bool is_log(std::string_view name) { return name.ends_with(".log") || name.ends_with(".out") || name.ends_with(".err"); }

}  // namespace

std::optional<LogName> classify_log(std::string_view name, std::string_view submission_id) {
  const auto [base, rotation] = split_rotation(name);
  if (!is_log(base)) return std::nullopt;
  LogName out{std::string(base), "ray", rotation};
  for (char& c : out.stream) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  if (out.stream.size() > 200) out.stream.resize(200);
  if (base.starts_with("job-driver-")) {
    out.kind = "driver";
    const std::string_view id = base.substr(11, base.size() - 11 - 4);
    if (!submission_id.empty() && id == submission_id) out.stream = "driver";
    return out;
  }
  if (base.starts_with("worker-") && !base.ends_with(".log")) {
    out.kind = "worker";
    return out;
  }
  constexpr std::array kRay{"raylet.",     "gcs_server.", "ray_process_exit", "runtime_env_",     "dashboard",
                            "supervisor-", "log_monitor", "monitor.",         "ray_client_server"};
  for (const std::string_view prefix : kRay) {
    if (base.starts_with(prefix)) return out;
  }
  return std::nullopt;
}

Result<std::string> find_session(const std::string& temp_dir) {
  std::error_code error;
  std::string newest;
  for (std::filesystem::directory_iterator it(temp_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    // session_<date>_<time>_<microseconds>_<pid>: names sort by time. session_latest is a link.
    if (!name.starts_with("session_2") || it->is_symlink(error) || !it->is_directory(error)) continue;
    if (name > newest) newest = name;
  }
  if (newest.empty()) return fail(ErrorCode::not_found, "no session below {}", temp_dir);
  return temp_dir + "/" + newest;
}

bool is_rays_own_line(std::string_view line) {
  return line.find("Runtime env is setting up.") != std::string_view::npos || line.starts_with("Running entrypoint for job ");
}

}  // namespace helio::ray
