#include "proc/process.h"

#include "base/log.h"
#include "proc/child.h"
#include "proc/sys_info.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace helio::proc {
namespace {

int send_signal(int pidfd, int number) { return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0)); }

class PidfdProcess final : public Process {
 public:
  PidfdProcess(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  [[nodiscard]] pid_t pid() const override { return pid_; }
  Result<void> signal(int number) override {
    if (send_signal(pidfd_.get(), number) != 0) return fail(system_error(errno, fmt::format("signal {} to process {}", number, pid_)));
    return {};
  }

 private:
  pid_t pid_;
  Fd pidfd_;
};

/// Waits on the loop until the pidfd says "ended". It has a descriptor of its own and lives in its handler, so it needs no Process.
void when_ended(rt::EventLoop& loop, Fd pidfd, std::function<void(Fd&)> fn) {
  loop.post([&loop, fd = std::move(pidfd), fn = std::move(fn)]() mutable {
    auto descriptor = std::make_shared<boost::asio::posix::stream_descriptor>(loop.context());
    boost::system::error_code assigned;
    descriptor->assign(fd.get(), assigned);
    if (assigned) {
      log::error("watch a pidfd: {}", assigned.message());
      return;
    }
    fd.release();
    descriptor->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [descriptor, fn = std::move(fn)](const boost::system::error_code& error) {
                             if (error) return;
                             Fd ended(descriptor->release());
                             fn(ended);
                           });
  });
}

Result<Fd> duplicate(const Fd& fd) {
  Fd copy(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(system_error(errno, "duplicate a descriptor"));
  return copy;
}

class SignalReaper final : public Reaper {
 public:
  explicit SignalReaper(rt::EventLoop& loop) : state_(std::make_shared<State>(loop.context())) {
    // Children that ended before the handler was there sent their signal to nobody.
    loop.post([state = state_] {
      wait(state);
      detail::reap_all();
    });
  }
  ~SignalReaper() override {
    boost::system::error_code ignored;
    state_->signals.cancel(ignored);
  }

 private:
  struct State {
    explicit State(boost::asio::io_context& context) : signals(context, SIGCHLD) {}
    boost::asio::signal_set signals;
  };
  static void wait(const std::shared_ptr<State>& state) {
    state->signals.async_wait([state](const boost::system::error_code& error, int) {
      if (error) return;
      wait(state);  // first, so that a child that ends during the reaping wakes us again
      detail::reap_all();
    });
  }
  std::shared_ptr<State> state_;
};

}  // namespace

namespace detail {

Result<std::shared_ptr<Process>> watch_child(rt::EventLoop& loop, Child child, std::function<void(ExitStatus)> on_exit) {
  auto copy = duplicate(child.pidfd);
  if (!copy) {  // out of descriptors: nobody could tell its end, so it must not run
    send_signal(child.pidfd.get(), SIGKILL);
    collect(child, true);
    return fail(std::move(copy).error());
  }
  const pid_t pid = child.pid;
  auto process = std::make_shared<PidfdProcess>(pid, std::move(*copy));
  when_ended(loop, std::move(child.pidfd), [pid, on_exit = std::move(on_exit)](Fd& fd) {
    Child ended{.pid = pid, .pidfd = std::move(fd)};
    const std::optional<ExitStatus> status = collect(ended, false);
    if (!status) log::error("process {} ended, but its status is lost", pid);
    if (on_exit) on_exit(status.value_or(ExitStatus{.code = 128 + SIGKILL, .signalled = true, .signal = SIGKILL}));
  });
  return process;
}

}  // namespace detail

Result<std::shared_ptr<Process>> spawn(rt::EventLoop& loop, const SpawnOptions& options, std::function<void(ExitStatus)> on_exit) {
  HELIO_TRY(plan, detail::make_plan(options));
  HELIO_TRY(child, detail::start_child(plan));
  return detail::watch_child(loop, std::move(child), std::move(on_exit));
}

namespace {

/// Reads until the other end closes, the deadline passes or `limit` bytes are there. False at the deadline.
bool drain(int fd, std::string& out, std::size_t limit, std::chrono::steady_clock::time_point deadline) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd item{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&item, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return false;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    if (out.size() < limit) out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

Result<std::string> run_and_capture(const SpawnOptions& options, Duration limit) {
  HELIO_TRY(plan, detail::make_plan(options));
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error(errno, "pipe"));
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  plan.output_fd = writer.get();
  HELIO_TRY(child, detail::start_child(plan));
  writer.reset();
  std::string out;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool in_time = drain(reader.get(), out, 1U << 20U, deadline);
  if (in_time) {  // its output is closed; it may still run
    pollfd item{.fd = child.pidfd.get(), .events = POLLIN, .revents = 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    in_time = poll(&item, 1, static_cast<int>(std::max<long>(left, 0))) > 0;
  }
  if (!in_time) send_signal(child.pidfd.get(), SIGKILL);
  // What it started goes with it. Before its status is taken: until then its number, and with it that of the group, is its own.
  if (options.new_session) ::kill(-child.pid, SIGKILL);
  const std::optional<ExitStatus> end = detail::collect(child, true);
  if (!in_time) return fail(ErrorCode::deadline_exceeded, "{} took longer than {}", options.argv[0], format_duration(limit));
  if (!end) return fail(ErrorCode::internal, "{}: its status is lost", options.argv[0]);
  if (end->code != 0) return fail(ErrorCode::internal, "{} exited with {}: {}", options.argv[0], end->code, out.substr(0, 500));
  return out;
}

Result<std::shared_ptr<Process>> watch_pid(rt::EventLoop& loop, pid_t pid, std::uint64_t ticks, std::function<void()> on_exit) {
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return fail(system_error(errno, fmt::format("process {}", pid)));
  // Only after the open: from here on the descriptor cannot come to mean another process.
  HELIO_TRY(found, start_ticks(pid));
  if (found != ticks) return fail(ErrorCode::not_found, "process {} has ended; its number is another's", pid);
  HELIO_TRY(copy, duplicate(pidfd));
  when_ended(loop, std::move(copy), [on_exit = std::move(on_exit)](Fd&) {
    if (on_exit) on_exit();
  });
  return std::make_shared<PidfdProcess>(pid, std::move(pidfd));
}

Result<std::uint64_t> start_ticks(pid_t pid) {
  HELIO_TRY(stat, process_stat(pid));
  return stat.start_ticks;
}

std::string boot_id() {
  auto text = read_file("/proc/sys/kernel/random/boot_id");
  if (!text) return "unknown";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

std::unique_ptr<Reaper> start_reaper(rt::EventLoop& loop) { return std::make_unique<SignalReaper>(loop); }

}  // namespace helio::proc
