#include "daemon/daemon_file.h"

#include "proc/files.h"

#include <charconv>

namespace helio::daemon {

Result<void> write_daemon_file(const model::Home& home, const model::DaemonFile& file) {
  return proc::write_file(home.daemon_file(), json::dump_pretty(json::encode(file)) + "\n", 0600);
}

bool is_written(const model::Home& home, const model::DaemonFile& file) {
  const auto text = proc::read_file(home.daemon_file(), 1U << 16U);
  if (!text) return false;
  const auto there = json::parse_as<model::DaemonFile>(*text, json::Unknown::ignore);
  return there && *there == file;
}

std::optional<std::uint16_t> former_port(const model::Home& home) {
  const auto text = proc::read_file(home.daemon_file(), 1U << 16U);
  if (!text) return std::nullopt;
  const auto file = json::parse_as<model::DaemonFile>(*text, json::Unknown::ignore);
  if (!file) return std::nullopt;
  const std::size_t colon = file->url.rfind(':');
  std::uint16_t port = 0;
  if (colon == std::string::npos) return std::nullopt;
  const char* const end = file->url.data() + file->url.size();
  const auto [stop, error] = std::from_chars(file->url.data() + colon + 1, end, port);
  if (error != std::errc{} || stop != end || port == 0) return std::nullopt;
  return port;
}

}  // namespace helio::daemon
