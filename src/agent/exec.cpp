#include "agent/exec.h"

#include "base/clock.h"
#include "proc/files.h"
#include "proc/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT: SIGKILL
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace helio::agent {

namespace {

constexpr int kMaxAtOnce = 16;
constexpr std::size_t kPiece = 32U << 10U;
constexpr Duration kLook = 100ms;      ///< between looks at limit and end while there is no output
constexpr Duration kAfterEnd = 200ms;  ///< for output of children that outlive the command
constexpr Duration kBackpressure = 20ms;

/// State of one running command, shared with its exit handler on the loop.
struct Running {
  std::mutex mutex;
  std::optional<proc::ExitStatus> ended;
};

}  // namespace

struct Execs::Shared {
  rt::EventLoop& loop;
  ExecOut out;
  std::atomic<bool> closing{false};
  std::mutex mutex;
  std::condition_variable idle;
  int running = 0;

  Shared(rt::EventLoop& l, ExecOut o) : loop(l), out(std::move(o)) {}

  void run(const ExecRequest& request, const ExecOptions& options) {
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
    const auto state = std::make_shared<Running>();
    auto process = proc::spawn(loop, spawn, [state](proc::ExitStatus status) {
      const std::scoped_lock lock(state->mutex);
      state->ended = status;
    });
    write_end.reset();
    if (!process) return out.done(request.id, std::nullopt, process.error().message());
    follow(request, **process, read_end.get(), *state);
  }

  void follow(const ExecRequest& request, proc::Process& process, int fd, Running& state) {
    const auto& clock = SystemClock::instance();
    const MonoTime until = clock.mono() + request.limit;
    std::optional<MonoTime> ended_at;
    bool open = true;
    bool timed_out = false;
    while (true) {
      std::optional<proc::ExitStatus> ended;
      {
        const std::scoped_lock lock(state.mutex);
        ended = state.ended;
      }
      const MonoTime now = clock.mono();
      if (ended && !ended_at) ended_at = now;
      if (ended && (!open || now - *ended_at >= kAfterEnd)) {
        return out.done(request.id, ended->code, timed_out ? "it ran longer than its limit and was killed" : std::string());
      }
      if (!ended && !timed_out && (closing || now >= until)) {
        timed_out = true;
        ::kill(-process.pid(), SIGKILL);  // it leads a session and so a group of its own
      }
      pollfd waiting{open ? fd : -1, POLLIN, 0};
      ::poll(&waiting, 1, static_cast<int>(kLook.count() / 1000) / (open ? 1 : 10));
      if (waiting.revents != 0) open = forward(request.id, fd);
    }
  }

  /// False at the end of the output.
  bool forward(const std::string& id, int fd) {
    std::array<char, kPiece> buffer{};
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    // A full queue is the reader's to drain; a lost connection lets the rest go.
    for (int tries = 0; tries < 50 && !closing; ++tries) {
      if (out.output(id, {buffer.data(), static_cast<std::size_t>(n)})) break;
      std::this_thread::sleep_for(kBackpressure);
    }
    return true;
  }
};

Execs::Execs(rt::EventLoop& loop, ExecOut out) : shared_(std::make_shared<Shared>(loop, std::move(out))) {}

Execs::~Execs() {
  shared_->closing = true;
  std::unique_lock lock(shared_->mutex);
  shared_->idle.wait(lock, [this] { return shared_->running == 0; });
}

void Execs::run(ExecRequest request, ExecOptions options) {
  if (request.argv.empty()) return shared_->out.done(request.id, std::nullopt, "no command");
  {
    const std::scoped_lock lock(shared_->mutex);
    if (shared_->closing || shared_->running >= kMaxAtOnce) {
      return shared_->out.done(request.id, std::nullopt, "too many commands run in this node");
    }
    ++shared_->running;
  }
  std::thread([shared = shared_, request = std::move(request), options = std::move(options)] {
    shared->run(request, options);
    const std::scoped_lock lock(shared->mutex);
    --shared->running;
    shared->idle.notify_all();
  }).detach();
}

}  // namespace helio::agent
