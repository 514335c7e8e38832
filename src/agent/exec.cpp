#include "agent/exec.h"

#include "base/clock.h"
#include "proc/files.h"
#include "proc/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT: SIGKILL
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace helio::agent {

namespace {

constexpr int kMaxAtOnce = 16;
constexpr std::size_t kPiece = 32U << 10U;
constexpr Duration kAfterEnd = 200ms;  ///< for output of children that outlive the command

/// What others tell the thread of one command, and what wakes it.
class Signals {
 public:
  Signals() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  struct Seen {
    std::optional<proc::ExitStatus> ended;
    bool cancelled = false;
  };

  void end(proc::ExitStatus status) {
    const std::scoped_lock lock(mutex_);
    seen_.ended = status;
    ring();
  }
  void cancel() {
    const std::scoped_lock lock(mutex_);
    seen_.cancelled = true;
    ring();
  }
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(event_.get(), &one, sizeof one);  // fails only when it rings already
  }
  /// Before looking at anything: what changes later rings again.
  Seen look() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(event_.get(), &count, sizeof count);
    const std::scoped_lock lock(mutex_);
    return seen_;
  }
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  const proc::Fd event_;
  std::mutex mutex_;
  Seen seen_;
};

/// Whole milliseconds until `then`, rounded up; -1: for ever.
int until(const std::optional<MonoTime>& then, MonoTime now) {
  if (!then) return -1;
  const std::int64_t us = std::max<std::int64_t>((*then - now).count(), 0);
  return static_cast<int>(std::min<std::int64_t>((us + 999) / 1000, std::numeric_limits<int>::max()));
}

}  // namespace

struct Execs::Shared {
  rt::EventLoop& loop;
  ExecOut out;
  std::mutex mutex;
  std::condition_variable idle;
  bool closing = false;
  int running = 0;
  std::map<std::string, std::shared_ptr<Signals>> signals;  ///< by id

  Shared(rt::EventLoop& l, ExecOut o) : loop(l), out(std::move(o)) {}

  template <class Fn>
  void each(Fn fn) {
    const std::scoped_lock lock(mutex);
    for (const auto& [id, one] : signals) fn(*one);
  }

  void run(const ExecRequest& request, const ExecOptions& options, const std::shared_ptr<Signals>& signals_of) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return out.done(request.id, std::nullopt, system_error(errno, "pipe").text());
    const proc::Fd read_end(ends[0]);
    proc::Fd write_end(ends[1]);
    ::fcntl(write_end.get(), F_SETFL, 0);  // the command's own writes block as usual
    proc::SpawnOptions spawn;
    spawn.argv = request.argv;
    spawn.env = options.env;
    spawn.cwd = options.cwd;
    spawn.output_fd = write_end.get();
    auto process = proc::spawn(loop, spawn, [signals_of](proc::ExitStatus status) { signals_of->end(status); });
    write_end.reset();
    if (!process) return out.done(request.id, std::nullopt, process.error().message());
    follow(request, **process, read_end.get(), *signals_of);
  }

  void follow(const ExecRequest& request, proc::Process& process, int fd, Signals& signals_of) {
    const auto& clock = SystemClock::instance();
    const MonoTime limit = clock.mono() + request.limit;
    std::optional<MonoTime> ended_at;
    std::string piece;  ///< read and not yet taken
    std::string why;    ///< killed
    bool open = true;
    while (true) {
      const auto [ended, cancelled] = signals_of.look();
      const MonoTime now = clock.mono();
      if (ended && !ended_at) ended_at = now;
      if (cancelled) piece.clear();
      if (!piece.empty() && out.output(request.id, piece)) piece.clear();
      if (ended && piece.empty() && (!open || cancelled || now - *ended_at >= kAfterEnd)) return out.done(request.id, ended->code, why);
      if (!ended && why.empty() && (cancelled || now >= limit)) {
        why = cancelled ? "it was cancelled" : "it ran longer than its limit and was killed";
        ::kill(-process.pid(), SIGKILL);  // it leads a session and so a group of its own
      }
      std::optional<MonoTime> next;
      if (ended_at && piece.empty()) next = *ended_at + kAfterEnd;
      if (!ended && why.empty()) next = limit;
      // With a piece in hand, the reader's queue is full: nothing more is read, and drained() rings.
      std::array<pollfd, 2> waiting{pollfd{open && piece.empty() ? fd : -1, POLLIN, 0}, pollfd{signals_of.fd(), POLLIN, 0}};
      ::poll(waiting.data(), waiting.size(), until(next, now));
      if (waiting[0].revents != 0) open = take(fd, piece);
    }
  }

  /// False at the end of the output.
  static bool take(int fd, std::string& piece) {
    std::array<char, kPiece> buffer{};
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n > 0) piece.assign(buffer.data(), static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }
};

Execs::Execs(rt::EventLoop& loop, ExecOut out) : shared_(std::make_shared<Shared>(loop, std::move(out))) {}

Execs::~Execs() {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->closing = true;
  }
  cancel_all();
  std::unique_lock lock(shared_->mutex);
  shared_->idle.wait(lock, [this] { return shared_->running == 0; });
}

void Execs::run(ExecRequest request, ExecOptions options) {
  if (request.argv.empty()) return shared_->out.done(request.id, std::nullopt, "no command");
  auto signals = std::make_shared<Signals>();
  {
    const std::scoped_lock lock(shared_->mutex);
    if (shared_->closing || shared_->running >= kMaxAtOnce || shared_->signals.contains(request.id)) {
      return shared_->out.done(request.id, std::nullopt, "too many commands run in this node");
    }
    ++shared_->running;
    shared_->signals[request.id] = signals;
  }
  std::thread([shared = shared_, signals = std::move(signals), request = std::move(request), options = std::move(options)] {
    shared->run(request, options, signals);
    const std::scoped_lock lock(shared->mutex);
    shared->signals.erase(request.id);
    --shared->running;
    shared->idle.notify_all();
  }).detach();
}

void Execs::cancel(const std::string& id) {
  const std::scoped_lock lock(shared_->mutex);
  if (const auto found = shared_->signals.find(id); found != shared_->signals.end()) found->second->cancel();
}

void Execs::cancel_all() {
  shared_->each([](Signals& one) { one.cancel(); });
}

void Execs::drained() {
  shared_->each([](Signals& one) { one.ring(); });
}

}  // namespace helio::agent
