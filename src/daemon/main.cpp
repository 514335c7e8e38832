#include "api/openapi.h"
#include "base/log.h"
#include "daemon/options.h"
#include "daemon/wiring.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
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
  const int number = wait_for_end(signals, options.foreground);
  log::info("stopping ({}); nodes are left alone", number == SIGINT ? "interrupt" : number == SIGHUP ? "hang-up" : "asked to");
  // Everything is durable at every moment, so whoever cannot wait may have it at once.
  std::thread([signals, foreground = options.foreground] {
    wait_for_end(signals, foreground);
    log::warn("asked twice: leaving at once");
    ::_exit(0);
  }).detach();
  (*started)->stop();
  started->reset();
  log::info("stopped");
  return 0;
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
