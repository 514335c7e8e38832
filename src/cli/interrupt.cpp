#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstring>

namespace helio::cli {
namespace {

/// Takes one signal off the descriptor.
bool take_signal(int fd) {
  signalfd_siginfo info{};
  return ::read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

}  // namespace

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Wakeup::signal() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd_.get(), &one, sizeof one);  // full means that it is signalled already
}

void Wakeup::drain() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &count, sizeof count);
}

Interrupt::Interrupt() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool Interrupt::wait(const Wakeup& wakeup, Duration at_most) {
  pollfd fds[] = {{signals_.get(), POLLIN, 0}, {wakeup.fd(), POLLIN, 0}};
  const auto ms = std::clamp<std::int64_t>(duration_cast<std::chrono::milliseconds>(at_most).count() + 1, 0, 3'600'000);
  if (::poll(fds, 2, static_cast<int>(ms)) <= 0) return false;
  if ((fds[1].revents & POLLIN) != 0) wakeup.drain();
  return (fds[0].revents & POLLIN) != 0 && take_signal(signals_.get());
}

Choice Interrupt::ask(const char* question) {
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  const UniqueFd tty(on_terminal ? ::open("/dev/tty", O_RDWR | O_CLOEXEC) : -1);
  if (!tty.valid()) return Choice::stop;
  [[maybe_unused]] const ssize_t written = ::write(tty.get(), question, std::strlen(question));
  while (true) {
    pollfd fds[] = {{signals_.get(), POLLIN, 0}, {tty.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0) continue;
    if ((fds[0].revents & POLLIN) != 0 && take_signal(signals_.get())) return Choice::detach;
    if (fds[1].revents == 0) continue;
    char line[64] = {};
    const ssize_t n = ::read(tty.get(), line, sizeof line - 1);
    if (n <= 0) return Choice::detach;  // the terminal is gone
    if (line[0] == 's' || line[0] == 'S') return Choice::stop;
    if (line[0] == 'd' || line[0] == 'D') return Choice::detach;
    return Choice::go_on;
  }
}

}  // namespace helio::cli
