#include "proc/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace helio::proc::detail {
namespace {

constexpr std::size_t kStackSize = 256U << 10U;

enum class Stage : int {
  none,
  join_cgroup,
  lock,
  lock_taken,
  record,
  map_user,
  private_mounts,
  bind_mount,
  mount_proc,
  session,
  output,
  cwd,
  descriptors,
  exec,
};

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::none:
      return "start";
    case Stage::join_cgroup:
      return "join cgroup";
    case Stage::lock:
    case Stage::lock_taken:
      return "lock";
    case Stage::record:
      return "write record";
    case Stage::map_user:
      return "map user";
    case Stage::private_mounts:
      return "make mounts private";
    case Stage::bind_mount:
      return "bind mount";
    case Stage::mount_proc:
      return "mount /proc";
    case Stage::session:
      return "setsid";
    case Stage::output:
      return "open output";
    case Stage::cwd:
      return "chdir";
    case Stage::descriptors:
      return "close descriptors";
    case Stage::exec:
      return "exec";
  }
  return "?";
}

/// All that the child touches: pointers into the parent's memory, and where it leaves its error.
struct Context {
  const ChildPlan* plan = nullptr;
  std::vector<char*> argv;
  std::vector<char*> env;
  std::string uid_map;
  std::string gid_map;
  sigset_t no_signals{};
  Stage stage = Stage::none;
  int error = 0;
  int lock_fd = -1;
};

bool failed(Context& c, Stage stage) {
  c.stage = stage;
  c.error = errno;
  return false;
}

bool write_all(const char* path, int flags, mode_t mode, const char* data, std::size_t size) {
  const int fd = open(path, flags | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0) return false;
  const ssize_t n = write(fd, data, size);
  const int error = errno;
  close(fd);
  errno = n < 0 ? error : EIO;
  return n == static_cast<ssize_t>(size);
}

/// Decimal digits of `value` at `out`; no allocation. Returns the end.
char* put_number(char* out, unsigned long long value) {
  std::array<char, 24> digits{};
  int n = 0;
  do {
    digits[static_cast<std::size_t>(n++)] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (n > 0) *out++ = digits[static_cast<std::size_t>(--n)];
  return out;
}

char* put_text(char* out, const char* text) {
  const std::size_t size = std::strlen(text);
  std::memcpy(out, text, size);
  return out + size;
}

/// Pid and start time as the still mounted outer /proc shows them.
bool identify(unsigned long long& pid, unsigned long long& ticks) {
  std::array<char, 1024> buffer{};
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, buffer.data(), buffer.size() - 1);
  close(fd);
  errno = EIO;
  if (n <= 0) return false;
  const char* p = buffer.data();
  for (pid = 0; *p >= '0' && *p <= '9'; ++p) pid = pid * 10 + static_cast<unsigned long long>(*p - '0');
  p = std::strrchr(buffer.data(), ')');
  if (p == nullptr) return false;
  for (int field = 2; field < 22; ++field) {  // strrchr left us at the end of field 2
    p = std::strchr(p + 1, ' ');
    if (p == nullptr) return false;
  }
  ++p;
  for (ticks = 0; *p >= '0' && *p <= '9'; ++p) ticks = ticks * 10 + static_cast<unsigned long long>(*p - '0');
  return pid != 0;
}

/// link(2) refuses to replace: so a record is written once, whole, and by one child only.
bool write_record(const ChildPlan& plan) {
  unsigned long long pid = 0;
  unsigned long long ticks = 0;
  if (!identify(pid, ticks)) return false;
  std::array<char, 256> text{};
  char* end = put_text(text.data(), R"({"pid":)");
  end = put_number(end, pid);
  end = put_text(end, R"(,"start_ticks":)");
  end = put_number(end, ticks);
  end = put_text(end, R"(,"boot_id":")");
  end = put_text(end, plan.boot_id.c_str());
  end = put_text(end, "\"}\n");
  std::array<char, 4096> temporary{};
  if (plan.record_file.size() + 32 > temporary.size()) {
    errno = ENAMETOOLONG;
    return false;
  }
  char* name = put_text(temporary.data(), plan.record_file.c_str());
  name = put_text(name, ".");
  put_number(name, pid);
  if (!write_all(temporary.data(), O_CREAT | O_TRUNC, 0600, text.data(), static_cast<std::size_t>(end - text.data()))) return false;
  const bool linked = link(temporary.data(), plan.record_file.c_str()) == 0;
  const int error = errno;
  unlink(temporary.data());
  errno = error;
  return linked;
}

bool claim(Context& c) {
  const ChildPlan& plan = *c.plan;
  for (const std::string& file : plan.cgroup_procs) {
    if (!write_all(file.c_str(), 0, 0, "0", 1)) return failed(c, Stage::join_cgroup);
  }
  if (!plan.lock_file.empty()) {
    c.lock_fd = open(plan.lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (c.lock_fd < 0) return failed(c, Stage::lock);
    if (flock(c.lock_fd, LOCK_EX | LOCK_NB) != 0) return failed(c, errno == EWOULDBLOCK ? Stage::lock_taken : Stage::lock);
  }
  if (!plan.record_file.empty() && !write_record(plan)) return failed(c, Stage::record);
  return true;
}

bool isolate(Context& c) {
  const ChildPlan& plan = *c.plan;
  if ((plan.namespaces & CLONE_NEWUSER) != 0) {
    // Without "deny" an ordinary user may not map groups; a host that has no such file maps without it.
    if (!write_all("/proc/self/setgroups", 0, 0, "deny", 4) && errno != ENOENT) return failed(c, Stage::map_user);
    if (!write_all("/proc/self/uid_map", 0, 0, c.uid_map.data(), c.uid_map.size())) return failed(c, Stage::map_user);
    if (!write_all("/proc/self/gid_map", 0, 0, c.gid_map.data(), c.gid_map.size())) return failed(c, Stage::map_user);
  }
  if ((plan.namespaces & CLONE_NEWNS) != 0) {
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed(c, Stage::private_mounts);
    for (const auto& [source, target] : plan.binds) {
      if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return failed(c, Stage::bind_mount);
    }
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) return failed(c, Stage::mount_proc);
  }
  if (plan.subreaper && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return failed(c, Stage::session);
  return true;
}

bool open_output(Context& c) {
  const ChildPlan& plan = *c.plan;
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return failed(c, Stage::output);
  int out = null;
  int err = null;
  if (plan.output_fd >= 0) {
    out = err = plan.output_fd;
  } else {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
    if (!plan.stdout_file.empty()) out = err = open(plan.stdout_file.c_str(), kFlags, 0600);
    if (!plan.stderr_file.empty()) err = open(plan.stderr_file.c_str(), kFlags, 0600);
    if (out < 0 || err < 0) return failed(c, Stage::output);
  }
  // Copies above the standard three first, so that one dup2 cannot close what the next one needs.
  const int high_out = fcntl(out, F_DUPFD_CLOEXEC, 3);
  const int high_err = fcntl(err, F_DUPFD_CLOEXEC, 3);
  if (high_out < 0 || high_err < 0 || dup2(null, 0) < 0 || dup2(high_out, 1) < 0 || dup2(high_err, 2) < 0) return failed(c, Stage::output);
  return true;
}

/// Libraries open descriptors without O_CLOEXEC (Asio's sockets): a child that inherited a listening socket would hold its port.
bool close_others(Context& c) {
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {  // before Linux 5.11
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < limit; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  if (c.lock_fd >= 0 && fcntl(c.lock_fd, F_SETFD, 0) != 0) return failed(c, Stage::descriptors);
  return true;
}

bool prepare(Context& c) {
  const ChildPlan& plan = *c.plan;
  // Handlers would run in memory that is still the parent's, and an ignored SIGPIPE would be inherited over exec.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &standard, nullptr);
  if (!claim(c)) return false;
  if (plan.new_session && setsid() < 0) return failed(c, Stage::session);
  if (!open_output(c)) return false;
  if (!isolate(c)) return false;
  if (chdir(plan.cwd.c_str()) != 0) return failed(c, Stage::cwd);
  return close_others(c);
}

int child_main(void* argument) {
  auto& c = *static_cast<Context*>(argument);
  if (prepare(c)) {
    if (c.plan->only_probe) _exit(0);
    sigprocmask(SIG_SETMASK, &c.no_signals, nullptr);
    execve(c.plan->program.c_str(), c.argv.data(), c.env.data());
    failed(c, Stage::exec);
  }
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));  // NOLINT: execve's signature
  out.push_back(nullptr);
  return out;
}

class Stack {
 public:
  Stack() : base_(mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {}
  ~Stack() {
    if (ok()) munmap(base_, kStackSize);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  [[nodiscard]] bool ok() const { return base_ != MAP_FAILED; }
  [[nodiscard]] void* top() const { return static_cast<char*>(base_) + kStackSize; }

 private:
  void* base_;
};

struct Awaited {
  std::optional<siginfo_t> end;
};

struct Table {
  std::mutex mutex;  ///< held over clone, so that a Reaper never meets a child that is not in the table yet
  std::map<pid_t, Awaited> children;
};

Table& table() {
  static Table instance;
  return instance;
}

void reap_one(pid_t pid) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

}  // namespace

Result<Child> start_child(const ChildPlan& plan) {
  Context c;
  c.plan = &plan;
  c.argv = pointers(plan.argv);
  c.env = pointers(plan.env);
  c.uid_map = fmt::format("{0} {0} 1\n", geteuid());
  c.gid_map = fmt::format("{0} {0} 1\n", getegid());
  sigemptyset(&c.no_signals);
  const Stack stack;
  if (!stack.ok()) return fail(system_error(errno, "stack of a child"));

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  const std::lock_guard lock(table().mutex);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD | plan.namespaces;
  const pid_t pid = clone(child_main, stack.top(), flags, &c, &pidfd);
  const int clone_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return fail(system_error(clone_error, "clone"));
  Child child{.pid = pid, .pidfd = Fd(pidfd)};
  if (c.error == 0) {
    table().children.try_emplace(pid);
    return child;
  }
  reap_one(pid);
  if (c.stage == Stage::lock_taken) return fail(ErrorCode::conflict, "lock {}: held by another process", plan.lock_file);
  const std::string what = c.stage == Stage::exec ? fmt::format("exec {}", plan.program) : name_of(c.stage);
  return fail(system_error(c.error, what).with("errno", std::to_string(c.error)));
}

Result<std::string> find_program(const std::string& argv0, const std::vector<std::string>& env) {
  if (argv0.empty()) return fail(ErrorCode::invalid_argument, "empty program name");
  if (argv0.find('/') != std::string::npos) return argv0;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
  }
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    path = colon == std::string_view::npos ? std::string_view() : path.substr(colon + 1);
    if (folder.empty()) continue;  // the current folder, by tradition; never wanted here
    std::string candidate = fmt::format("{}/{}", folder, argv0);
    struct stat info{};
    if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode)) return candidate;
  }
  return fail(ErrorCode::not_found, "no program {} in PATH", argv0);
}

Result<ChildPlan> make_plan(const SpawnOptions& options) {
  if (options.argv.empty()) return fail(ErrorCode::invalid_argument, "nothing to run");
  HELIO_TRY(program, find_program(options.argv[0], options.env));
  ChildPlan plan;
  plan.program = program;
  plan.argv = options.argv;
  plan.env = options.env;
  plan.cwd = options.cwd;
  plan.stdout_file = options.stdout_file;
  plan.stderr_file = options.stderr_file;
  plan.output_fd = options.output_fd;
  plan.new_session = options.new_session;
  return plan;
}

std::optional<ExitStatus> collect(const Child& child, bool wait) {
  const auto id = static_cast<id_t>(child.pidfd.get());
  if (wait) {  // without the lock: this may last. WNOWAIT leaves the reaping to the locked part
    siginfo_t info{};
    while (waitid(P_PIDFD, id, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  const std::lock_guard lock(table().mutex);
  const auto found = table().children.find(child.pid);
  siginfo_t info{};
  if (found != table().children.end() && found->second.end) {
    info = *found->second.end;
  } else if (waitid(P_PIDFD, id, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  if (found != table().children.end()) table().children.erase(found);
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status, .signalled = false, .signal = 0};
  return ExitStatus{.code = 128 + info.si_status, .signalled = true, .signal = info.si_status};
}

void reap_all() {
  const std::lock_guard lock(table().mutex);
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
    const auto found = table().children.find(info.si_pid);
    if (found != table().children.end()) found->second.end = info;
  }
}

}  // namespace helio::proc::detail
