#include "api/openapi.h"
#include "base/log.h"
#include "daemon/home_watch.h"
#include "daemon/options.h"
#include "daemon/wiring.h"
#include "proc/files.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <cstdio>
#include <thread>

namespace {

using namespace helio;  // NOLINT(google-build-using-namespace): the program

/// Signals that this process waits for; blocked in every thread.
sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

/// The number of the next signal that asks for the end.
int wait_for_end(const sigset_t& set, bool foreground) {
  for (;;) {
    int number = 0;
    if (::sigwait(&set, &number) != 0) continue;
    if (number != SIGHUP || foreground) return number;
  }
}

/// The same, and looks after the data folder meanwhile. 0: it is no longer ours.
int serve(const sigset_t& set, const daemon::Options& options, daemon::Daemon& daemon) {
  const proc::Fd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  daemon::HomeWatch watch(options.home);
  for (;;) {
    watch.wait(signals.get());
    signalfd_siginfo info{};
    if (::read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo != SIGHUP || options.foreground) return static_cast<int>(info.ssi_signo);
    } else if (auto fine = daemon.look_after_files(); !fine) {
      log::error("{}", fine.error().text());
      return 0;
    }
  }
}

/// Dozens of threads with an arena each would hold memory that none of them uses; large blocks go back to the system at once.
void limit_memory() {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 2 << 20);
}

constexpr std::int64_t kLogLimit = 16 << 20;

int run(const daemon::Options& options) {
  log::rotate(options.home.daemon_log(), kLogLimit);
  const sigset_t signals = waited_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  auto started = daemon::Daemon::start(options, [] { ::kill(::getpid(), SIGTERM); });
  if (!started) {
    log::error("{}", started.error().text());
    return cli_exit_code(started.error().code());
  }
  log::info("heliostatd {} listens on {}, data in {}", HELIO_VERSION, (*started)->url(), options.home.root);
  const int number = serve(signals, options, **started);
  const char* why = number == 0 ? "folder lost" : number == SIGINT ? "interrupt" : number == SIGHUP ? "hang-up" : "asked to";
  log::info("stopping ({}); nodes are left alone", why);
  // Everything is durable at every moment, so whoever cannot wait may have it at once.
  std::thread([signals, foreground = options.foreground] {
    wait_for_end(signals, foreground);
    log::warn("asked twice: leaving at once");
    ::_exit(0);
  }).detach();
  (*started)->stop();
  started->reset();
  log::info("stopped");
  return number == 0 ? cli_exit_code(ErrorCode::conflict) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  limit_memory();
  log::set_program("heliostatd");
  daemon::Options options;
  if (const auto code = daemon::parse_options(argc, argv, options)) return *code;
  if (options.print_openapi) {
    const std::string text = api::openapi_text(HELIO_VERSION);
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
  }
  return run(options);
}
