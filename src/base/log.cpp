#include "base/log.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>

namespace helio::log {
namespace {

std::atomic<Level> g_level{Level::info};
std::atomic<long> g_errors{0};
std::string g_program = "helio";  // written once before threads start
std::string g_path;               // the same; empty: the file is not ours to rename
std::int64_t g_limit = 0;
std::mutex g_rotating;

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

/// A failure leaves the old file in use: there is nowhere to say so.
void rotate_if_full() {
  struct stat used{};
  if (::fstat(STDERR_FILENO, &used) != 0 || !S_ISREG(used.st_mode) || used.st_size < g_limit) return;
  const std::scoped_lock lock(g_rotating);
  struct stat named{};
  if (::fstat(STDERR_FILENO, &used) != 0 || used.st_size < g_limit) return;  // another thread did it
  if (::lstat(g_path.c_str(), &named) != 0 || named.st_dev != used.st_dev || named.st_ino != used.st_ino) return;
  if (::rename(g_path.c_str(), (g_path + ".1").c_str()) != 0) return;
  const int fd = ::open(g_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  struct stat out{};
  // What is printed without the facade goes to the same place.
  if (::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == used.st_dev && out.st_ino == used.st_ino) ::dup2(fd, STDOUT_FILENO);
  ::dup2(fd, STDERR_FILENO);
  ::close(fd);
}

}  // namespace

void set_level(Level level) { g_level = level; }
void set_program(std::string_view name) { g_program = name; }
void rotate(std::string path, std::int64_t limit) {
  g_path = std::move(path);
  g_limit = limit;
}
bool enabled(Level level) { return level >= g_level.load(std::memory_order_relaxed); }
long errors_logged() { return g_errors.load(); }

void write(Level level, std::string_view line) {
  if (!g_path.empty()) rotate_if_full();
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
