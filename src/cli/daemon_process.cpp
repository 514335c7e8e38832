#include "cli/daemon_process.h"

#include "cli/local_file.h"
#include "proc/process.h"
#include "proc/sys_info.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

/// The number behind the last "pid ".
pid_t pid_in(std::string_view text) {
  const std::size_t at = text.rfind("pid ");
  pid_t pid = 0;
  if (at != std::string_view::npos) std::from_chars(text.data() + at + 4, text.data() + text.size(), pid);
  return pid;
}

bool has_open(pid_t pid, const struct stat& file) {
  std::error_code error;
  for (fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), error), end; !error && it != end; it.increment(error)) {
    struct stat info{};
    if (::stat(it->path().c_str(), &info) == 0 && info.st_dev == file.st_dev && info.st_ino == file.st_ino) return true;
  }
  return false;
}

}  // namespace

Result<model::DaemonFile> read_daemon_file(const model::Home& home) {
  HELIO_TRY(text, read_file(home.daemon_file()));
  auto file = json::parse_as<model::DaemonFile>(text, json::Unknown::ignore);
  if (!file) return fail(ErrorCode::internal, "{} is damaged: {}", home.daemon_file(), file.error().text());
  return file;
}

bool is_alive(const model::DaemonFile& file) {
  if (file.pid <= 0 || file.pid > std::numeric_limits<pid_t>::max() || file.url.empty() || file.boot_id != proc::boot_id()) return false;
  const auto stat = proc::process_stat(static_cast<pid_t>(file.pid));
  return stat && stat->start_ticks == file.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

Result<model::DaemonFile> running_daemon(const model::Home& home) {
  auto file = read_daemon_file(home);
  if (!file || !is_alive(*file)) return fail(ErrorCode::unavailable, "no daemon runs with {}; start it with `helio up`", home.root);
  return file;
}

std::optional<LockHolder> lock_holder(const model::Home& home) {
  const UniqueFd fd(::open(home.lock().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  // Shared, so that two who only ask do not take each other for a holder; given back with the descriptor.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  LockHolder holder;
  std::array<char, 256> text;
  const ssize_t n = ::pread(fd.get(), text.data(), text.size(), 0);
  holder.text.assign(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  holder.text.resize(std::min(holder.text.find('\n'), holder.text.size()));
  // The text can be a former holder's, and its pid another program's by now: such a process is not to be ended.
  const pid_t pid = pid_in(holder.text);
  if (pid <= 0) return holder;
  const auto stat = proc::process_stat(pid);
  if (!stat || stat->comm != "heliostatd" || !has_open(pid, info)) return holder;
  holder.pid = pid;
  holder.start_ticks = stat->start_ticks;
  holder.stopped = stat->state == 'T' || stat->state == 't';
  return holder;
}

Error no_answer(const model::Home& home, const LockHolder& holder) {
  if (holder.pid == 0) {
    return Error(ErrorCode::unavailable, fmt::format("{} is held by a process that cannot be told ('{}'); `fuser {}` names it", home.lock(),
                                                     holder.text, home.lock()));
  }
  if (holder.stopped) {
    return Error(
        ErrorCode::unavailable,
        fmt::format("heliostatd (pid {}) is stopped by a signal and does not answer; `kill -CONT {}` lets it go on, `kill -KILL {}` "
                    "ends it and leaves running jobs alone",
                    holder.pid, holder.pid, holder.pid));
  }
  const auto file = running_daemon(home);
  const bool known = file && file->pid == holder.pid;
  return Error(
      ErrorCode::unavailable,
      fmt::format("heliostatd (pid {}) runs with {}{}; `helio down` ends it, then `helio up` starts another; its log is {}", holder.pid,
                  home.root, known ? " but does not answer" : " but its daemon.json is missing or damaged", home.daemon_log()));
}

}  // namespace helio::cli
