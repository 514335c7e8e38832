#include "cli/follow.h"

#include "cli/interrupt.h"
#include "cli/local_file.h"
#include "cli/outcome.h"
#include "cli/progress.h"
#include "cli/sse.h"

#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

namespace helio::cli {
namespace {

constexpr Duration kFirstPause = 50ms;
constexpr Duration kLongestPause = 1s;
constexpr Duration kEventSilence = 40s;  // the daemon sends a comment every 15 s
constexpr Duration kLogSilence = 24h;    // a quiet program is no broken connection; a dead daemon closes the socket
constexpr Duration kQuietStage = 10s;
constexpr Duration kTick = 500ms;     // how late a line about waiting may be
constexpr Duration kLastWords = 30s;  // for output that is still on its way when the job has ended

/// The daemon is away, or the connection broke: worth another try.
bool is_transient(const Error& error) { return error.code() == ErrorCode::unavailable || error.code() == ErrorCode::deadline_exceeded; }

/// Pauses between tries while the daemon is away.
class Backoff {
 public:
  void pause(const std::atomic<bool>& cancelled) {
    for (Duration left = pause_; left > 0ms && !cancelled; left -= kFirstPause) std::this_thread::sleep_for(std::min(left, kFirstPause));
    pause_ = std::min(pause_ * 2, kLongestPause);
  }
  void reset() { pause_ = kFirstPause; }

 private:
  Duration pause_ = kFirstPause;
};

Error cancelled_error() { return Error(ErrorCode::cancelled, "interrupted"); }

}  // namespace

Result<void> follow_log(const Context& context, const std::string& job, const LogFollow& follow, const std::atomic<bool>& cancelled,
                        const std::function<Result<void>(std::string_view)>& write) {
  std::int64_t offset = follow.offset;
  Backoff backoff;
  while (!cancelled) {
    std::optional<Error> write_error;
    const auto once = [&]() -> Result<bool> {
      HELIO_TRY(api, ApiClient::connect(context));
      auto pairs = follow.selection;
      pairs.emplace_back("offset", std::to_string(offset));
      pairs.emplace_back("follow", "true");
      net::ClientRequest request;
      request.target = "/v1/jobs/" + net::url_encode(job) + "/logs" + query(pairs);
      request.deadline = kLogSilence;
      HELIO_CHECK_OK(api->stream(request, [&](std::string_view bytes) {
        backoff.reset();
        if (auto ok = write(bytes); !ok) {
          write_error = std::move(ok).error();
          return false;
        }
        offset += static_cast<std::int64_t>(bytes.size());
        return !cancelled.load();
      }));
      // A clean end of the body is the end of the log only when the job has ended too.
      HELIO_TRY(state, api->job(job));
      return is_terminal(state.state);
    };
    const auto done = once();
    if (write_error) return fail(std::move(*write_error));
    if (done && *done) return {};
    if (!done && !is_transient(done.error())) return fail(done.error());
    backoff.pause(cancelled);
  }
  return fail(cancelled_error());
}

namespace {

/// One thread's view of a job through events.
class JobWatch {
 public:
  using OnChange = std::function<void(const model::Job&, const std::vector<model::Attempt>&)>;
  JobWatch(const Context& context, const std::string& job, const std::atomic<bool>& cancelled, const OnChange& on_change)
      : context_(context), job_(job), cancelled_(cancelled), on_change_(on_change) {}

  Result<model::Job> run() {
    while (!cancelled_) {
      const auto done = once();
      if (done && *done) return std::move(last_);
      if (!done && !is_transient(done.error())) return fail(done.error());
      backoff_.pause(cancelled_);
    }
    return fail(cancelled_error());
  }

 private:
  Result<bool> refresh(ApiClient& api) {
    HELIO_TRY(job, api.job(job_));
    HELIO_TRY(attempts, api.attempts(job_));
    last_ = std::move(job);
    since_ = std::max(since_, last_.revision);
    on_change_(last_, attempts);
    backoff_.reset();
    return is_terminal(last_.state);
  }

  /// Until the job has ended (true) or the stream of events breaks (false, or an error).
  Result<bool> once() {
    HELIO_TRY(reads, ApiClient::connect(context_));
    HELIO_TRY(stream, ApiClient::connect(context_));
    HELIO_TRY(ended, refresh(*reads));
    if (ended) return true;
    net::ClientRequest request;
    request.target = "/v1/events" + query({{"since", std::to_string(since_)}, {"job", job_}, {"watch", "true"}});
    request.deadline = kEventSilence;
    SseParser parser;
    Result<bool> state = false;
    HELIO_CHECK_OK(stream->stream(request, [&](std::string_view bytes) {
      bool changed = false;
      parser.feed(bytes, [&](const SseEvent& event) {
        changed = true;
        since_ = std::max<std::int64_t>(since_, std::atoll(event.id.c_str()));
      });
      if (changed) state = refresh(*reads);
      return state && !*state && !cancelled_;
    }));
    return state;
  }

  const Context& context_;
  const std::string& job_;
  const std::atomic<bool>& cancelled_;
  const OnChange& on_change_;
  Backoff backoff_;
  model::Job last_;
  std::int64_t since_ = 0;
};

}  // namespace

Result<model::Job> watch_job(const Context& context, const std::string& job, const std::atomic<bool>& cancelled,
                             const std::function<void(const model::Job&, const std::vector<model::Attempt>&)>& on_change) {
  return JobWatch(context, job, cancelled, on_change).run();
}

namespace {

/// Shared between the two followers and the thread that waits for them and for signals.
struct RunState {
  std::mutex mutex;
  std::atomic<bool> cancelled{false};
  std::optional<Result<model::Job>> ended;
  bool output_done = false;
  std::vector<model::Attempt> attempts;
  Progress progress;

  explicit RunState(Progress::Write write) : progress(std::move(write)) {}
};

void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

void follow_stages(const Context& context, const std::string& job, RunState& state, const Wakeup& wakeup) {
  const auto on_change = [&](const model::Job& now, const std::vector<model::Attempt>& attempts) {
    const std::scoped_lock lock(state.mutex);
    state.progress.update(now, attempts, SystemClock::instance().now());
    state.attempts = attempts;
  };
  auto ended = watch_job(context, job, state.cancelled, on_change);
  {
    const std::scoped_lock lock(state.mutex);
    state.ended = std::move(ended);
  }
  wakeup.signal();
}

void follow_output(const Context& context, const std::string& job, RunState& state, const Wakeup& wakeup) {
  bool closed = false;  // nobody reads our output any more: the job goes on
  const auto done =
      follow_log(context, job, {.selection = {{"stream", "driver"}}}, state.cancelled, [&](std::string_view bytes) -> Result<void> {
        if (!closed && !write_all(STDOUT_FILENO, bytes)) closed = true;
        return {};
      });
  if (!done && done.error().code() != ErrorCode::cancelled && done.error().code() != ErrorCode::not_found) {
    say("helio: output: " + done.error().text());
  }
  {
    const std::scoped_lock lock(state.mutex);
    state.output_done = true;
  }
  wakeup.signal();
}

Result<void> ask_stop(const Context& context, const std::string& job) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_CHECK_OK(api->send("POST", "/v1/jobs/" + net::url_encode(job) + "/stop", nullptr));
  return {};
}

/// What Ctrl-C means. True: detach now.
bool interrupted(const Context& context, const std::string& job, Interrupt& interrupt, int times) {
  if (times > 1) return true;
  const Choice choice = interrupt.ask("\nstop the job [s], leave it running and detach [d], or go on [any other key]? ");
  if (choice == Choice::detach) return true;
  if (choice == Choice::go_on) return false;
  say("stopping " + job + "; once more to detach");
  if (auto stopped = ask_stop(context, job); !stopped) say("helio: " + stopped.error().text());
  return false;
}

/// Waits for both followers; false when the user detached.
bool wait_for_end(const Context& context, const std::string& job, RunState& state, Interrupt& interrupt, const Wakeup& wakeup) {
  int signals = 0;
  std::optional<MonoTime> last_words;
  const SystemClock& clock = SystemClock::instance();
  while (true) {
    Duration wait = kTick;
    {
      const std::scoped_lock lock(state.mutex);
      if (state.ended) {
        if (state.output_done || !*state.ended) return true;
        if (!last_words) last_words = clock.mono() + kLastWords;
        wait = *last_words - clock.mono();
        if (wait <= 0ms) {
          say("helio: the job has ended, but not all of its output arrived; `helio logs " + job + "` reads it");
          return true;
        }
      } else {
        state.progress.tick(clock.now(), kQuietStage);
      }
    }
    if (interrupt.wait(wakeup, wait) && interrupted(context, job, interrupt, ++signals)) return false;
  }
}

}  // namespace

Result<int> follow_to_end(const Context& context, const std::string& job, RunView view) {
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for this signal
  Interrupt interrupt;
  const Wakeup wakeup;
  RunState state([view](const std::string& line) {
    if (view.stages) say(line);
  });
  state.output_done = !view.output;
  std::jthread stages([&] { follow_stages(context, job, state, wakeup); });
  std::jthread output;
  if (view.output) output = std::jthread([&] { follow_output(context, job, state, wakeup); });
  const bool to_the_end = wait_for_end(context, job, state, interrupt, wakeup);
  if (!to_the_end) {
    say("detached; " + job + " goes on: helio wait " + job);
    std::_Exit(kExitDetached);  // the followers sit in reads that nothing else would end
  }
  const std::scoped_lock lock(state.mutex);
  int code = kExitPlatform;
  if (!*state.ended) {
    say("helio: " + state.ended->error().text());
    code = cli_exit_code(state.ended->error().code());
  } else {
    code = exit_code_of(**state.ended);
    if (view.stages) std::fputs(closing_text(**state.ended, state.attempts).c_str(), stderr);
  }
  if (!state.output_done) std::_Exit(code);
  return code;
}

}  // namespace helio::cli
