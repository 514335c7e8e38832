#include "base/log.h"

#include "base/clock.h"

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <string>

namespace helio::log {
namespace {

std::atomic<Level> g_level{Level::info};
std::atomic<long> g_errors{0};
std::string g_program = "helio";  // written once before threads start

constexpr std::string_view letter(Level level) {
  switch (level) {
    case Level::debug:
      return "D";
    case Level::info:
      return "I";
    case Level::warn:
      return "W";
    case Level::error:
      return "E";
  }
  return "?";
}

}  // namespace

void set_level(Level level) { g_level = level; }
void set_program(std::string_view name) { g_program = name; }
bool enabled(Level level) { return level >= g_level.load(std::memory_order_relaxed); }
long errors_logged() { return g_errors.load(); }

void write(Level level, std::string_view line) {
  if (level == Level::error) ++g_errors;
  std::string text =
      fmt::format("{} {} {}[{}] {}\n", format_time(SystemClock::instance().now()), letter(level), g_program, ::getpid(), line);
  // One write(2) per line keeps lines of several processes apart in a shared file.
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace helio::log
