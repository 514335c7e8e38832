#include "cli/daemon.h"

#include "cli/api_client.h"
#include "cli/local_file.h"
#include "proc/sys_info.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kStartPatience = 30s;
constexpr Duration kProbe = 2s;
constexpr int kRetryMs = 20;
constexpr std::size_t kLogTail = 2000;

// The glibc wrapper is newer than the C library that we promise to run on.
UniqueFd pidfd_of(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

/// A folder that holds something keeps its mode: somebody may have named /tmp, or the root of the file system.
Result<void> make_home(const model::Home& home) {
  std::error_code error;
  if (const fs::path parent = fs::path(home.root).parent_path(); !parent.empty()) fs::create_directories(parent, error);
  if (error) return fail(system_error(error.value(), "make " + home.root));
  if (::mkdir(home.root.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return fail(system_error(errno, "make " + home.root));
  struct stat info{};
  if (::stat(home.root.c_str(), &info) != 0) return fail(system_error(errno, "open " + home.root));
  if (!S_ISDIR(info.st_mode)) return fail(ErrorCode::precondition_failed, "{} is no folder: choose another --home", home.root);
  if ((info.st_mode & 0077U) == 0) return {};
  if (info.st_uid == ::geteuid() && fs::is_empty(home.root, error) && !error) {
    if (::chmod(home.root.c_str(), 0700) != 0) return fail(system_error(errno, "protect " + home.root));
    return {};
  }
  return fail(ErrorCode::precondition_failed,
              "other users can enter {}: a data folder holds secrets; choose another --home, or chmod 700 it", home.root);
}

Result<std::vector<std::string>> daemon_environment(const model::Home& home) {
  HELIO_TRY(root, absolute_path(home.root));
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("HELIOSTAT_HOME=") && !text.starts_with("HELIOSTAT_TOKEN=")) out.emplace_back(text);
  }
  out.push_back("HELIOSTAT_HOME=" + root);
  return out;
}

/// In the child: only async-signal-safe calls from here on.
[[noreturn]] void become_daemon(const char* program, char* const* argv, char* const* envp, int log, int report) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  [[maybe_unused]] const int moved = ::chdir("/");
  ::execve(program, argv, envp);
  const int why = errno;
  [[maybe_unused]] const ssize_t n = ::write(report, &why, sizeof why);
  ::_exit(127);
}

/// Its pid; the program replaced ours for sure.
Result<pid_t> spawn_daemon(const model::Home& home, const std::string& program) {
  HELIO_TRY(variables, daemon_environment(home));
  const UniqueFd log(::open(home.daemon_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return fail(system_error(errno, "open " + home.daemon_log()));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error(errno, "pipe"));
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  std::string name = program;
  char* argv[] = {name.data(), nullptr};
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error(errno, "start " + program));
  if (pid == 0) become_daemon(program.c_str(), argv, envp.data(), log.get(), write_end.get());
  write_end = UniqueFd();
  int why = 0;
  if (::read(read_end.get(), &why, sizeof why) == static_cast<ssize_t>(sizeof why)) return fail(system_error(why, "start " + program));
  return pid;
}

/// None: it ended because somebody else holds the folder.
Result<std::optional<DaemonUp>> wait_until_up(const model::Home& home, pid_t pid, MonoTime deadline) {
  const UniqueFd alive = pidfd_of(pid);
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ::inotify_add_watch(watch.get(), home.root.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO);
  const SystemClock& clock = SystemClock::instance();
  const char* how = "does not answer after 30s and was ended";
  while (clock.mono() < deadline) {
    const auto file = running_daemon(home);
    if (file && file->pid == pid && daemon_answers(file->url, kProbe)) return DaemonUp{file->url, file->version, true};
    pollfd fds[] = {{watch.get(), POLLIN, 0}, {alive.get(), POLLIN, 0}};
    ::poll(fds, 2, kRetryMs);
    char events[4096];
    while (::read(watch.get(), events, sizeof events) > 0) {
    }
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) != pid) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == cli_exit_code(ErrorCode::conflict)) return std::optional<DaemonUp>();
    how = "ended at once";
    pid = 0;
    break;
  }
  // One that hangs would hold the folder against the next try. It blocks the signals that ask while it starts.
  if (pid != 0 && ::kill(pid, SIGKILL) == 0) ::waitpid(pid, nullptr, 0);
  std::string log = tail_of_file(home.daemon_log(), kLogTail);
  if (log.empty()) log = "(it wrote nothing)";
  return fail(ErrorCode::unavailable, "heliostatd {}; the end of {}:\n{}", how, home.daemon_log(), log);
}

/// Waits while somebody else's daemon starts or ends. None: nobody holds the folder.
Result<std::optional<DaemonUp>> wait_for_other(const model::Home& home, MonoTime deadline) {
  for (auto holder = lock_holder(home); holder; holder = lock_holder(home)) {
    // A daemon that was started by somebody else at the same moment is as good as ours.
    const auto file = running_daemon(home);
    if (file && !holder->stopped && daemon_answers(file->url, kProbe)) return DaemonUp{file->url, file->version, false};
    if (holder->stopped || SystemClock::instance().mono() >= deadline) return fail(no_answer(home, *holder));
    ::poll(nullptr, 0, kRetryMs);
  }
  return std::optional<DaemonUp>();
}

/// For a daemon that cannot be asked through its API.
Result<bool> end_holder(const model::Home& home, const LockHolder& holder, Duration patience) {
  if (holder.pid == 0 || holder.stopped) return fail(no_answer(home, holder));
  const UniqueFd alive = pidfd_of(holder.pid);
  const auto told = proc::signal_process(holder.pid, holder.start_ticks, SIGTERM);
  if (!told && told.error().code() != ErrorCode::not_found) return fail(told.error());
  const MonoTime deadline = SystemClock::instance().mono() + patience;
  while (SystemClock::instance().mono() < deadline) {
    pollfd fds[] = {{alive.get(), POLLIN, 0}};
    ::poll(fds, 1, kRetryMs);
    const auto now = lock_holder(home);
    if (!now || (now->pid != holder.pid && now->pid != 0)) return true;
  }
  return fail(ErrorCode::deadline_exceeded,
              "heliostatd (pid {}) is still there after {}; `kill -KILL {}` ends it and leaves running jobs alone", holder.pid,
              format_duration(patience), holder.pid);
}

}  // namespace

Result<std::string> find_daemon_program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path beside = self.parent_path() / "heliostatd";
    if (::access(beside.c_str(), X_OK) == 0) return beside.string();
  }
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  std::string_view rest = path == nullptr ? std::string_view() : std::string_view(path);
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/heliostatd";
    if (candidate[0] == '/' && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return fail(ErrorCode::not_found, "heliostatd is neither beside this program nor in PATH");
}

Result<DaemonUp> daemon_up(const Context& context) {
  if (!context.url.empty()) {
    if (daemon_answers(context.url, kProbe, context.roots)) return DaemonUp{context.url, {}, false};
    return fail(ErrorCode::unavailable, "nothing answers at {}; unset HELIOSTAT_URL to start a daemon on this machine", context.url);
  }
  if (const auto file = running_daemon(context.home); file && daemon_answers(file->url, kProbe)) {
    return DaemonUp{file->url, file->version, false};
  }
  HELIO_TRY(program, find_daemon_program());
  HELIO_CHECK_OK(make_home(context.home));
  const MonoTime deadline = SystemClock::instance().mono() + kStartPatience;
  while (true) {
    HELIO_TRY(other, wait_for_other(context.home, deadline));
    if (other) return std::move(*other);
    HELIO_TRY(pid, spawn_daemon(context.home, program));
    HELIO_TRY(ours, wait_until_up(context.home, pid, deadline));
    if (ours) return std::move(*ours);
  }
}

Result<bool> daemon_down(const Context& context, Duration patience) {
  const auto file = running_daemon(context.home);
  if (!file || !daemon_answers(file->url, kProbe)) {
    const auto holder = lock_holder(context.home);
    if (!holder) return false;
    return end_holder(context.home, *holder, patience);
  }
  const UniqueFd alive = pidfd_of(static_cast<pid_t>(file->pid));
  HELIO_TRY(api, ApiClient::connect(context));
  const auto asked = api->send("POST", "/v1/daemon/stop", nullptr);
  // A daemon that leaves before its answer is out has heard us too: its process tells.
  if (!asked && (asked.error().code() != ErrorCode::unavailable || !alive.valid())) return fail(asked.error());
  if (!alive.valid()) return true;
  pollfd fds[] = {{alive.get(), POLLIN, 0}};
  const int ms = static_cast<int>(duration_cast<std::chrono::milliseconds>(patience).count());
  if (::poll(fds, 1, ms) > 0) return true;
  return fail(ErrorCode::deadline_exceeded, "heliostatd (pid {}) is still there after {}; see {}", file->pid, format_duration(patience),
              context.home.daemon_log());
}

}  // namespace helio::cli
