#include "agent/leash.h"

#include "ray/shell_quote.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT: kill()
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace helio::agent {

namespace {

constexpr std::string_view kProgram = "/leash";
constexpr std::string_view kSocket = ".socket";  ///< after the program's name
constexpr int kNoSubmitter = 125;
constexpr int kNoShell = 126;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(ErrorCode::invalid_argument, "{} is too long for a socket", path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }  // NOLINT: the API's cast

/// True once the other side is gone; what it says means nothing.
bool has_ended(int fd) {
  std::array<char, 64> bytes{};
  const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

Result<std::unique_ptr<Leash>> Leash::hold(const std::string& folder, std::function<void(bool held)> on_change) {
  const std::string program = folder + std::string(kProgram);
  const std::string path = program + std::string(kSocket);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    ::unlink(program.c_str());
    std::filesystem::create_symlink(self, program, error);
  }
  if (error) return fail(system_error(error.value(), "make " + program));
  HELIO_TRY(address, address_of(path));
  proc::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return fail(system_error(errno, "make a socket"));
  ::unlink(path.c_str());
  if (::bind(listener.get(), generic(address), sizeof address) != 0) return fail(system_error(errno, "listen at " + path));
  if (::listen(listener.get(), 4) != 0) return fail(system_error(errno, "listen at " + path));
  proc::Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail(system_error(errno, "make an eventfd"));
  return std::unique_ptr<Leash>(new Leash(program, std::move(listener), std::move(wake), std::move(on_change)));
}

Leash::Leash(std::string program, proc::Fd listener, proc::Fd wake, std::function<void(bool)> on_change)
    : program_(std::move(program)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      on_change_(std::move(on_change)),
      thread_([this] { run(); }) {}

Leash::~Leash() {
  stop_ = true;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Leash::cut() {
  cut_ = true;
  ::eventfd_write(wake_.get(), 1);
}

std::string Leash::wrap(const std::string& line) const {
  return fmt::format("exec {} {}", ray::shell_quote(program_), ray::shell_quote(line));
}

void Leash::run() {
  proc::Fd driver;
  while (!stop_) {
    std::array<pollfd, 3> fds{pollfd{wake_.get(), POLLIN, 0}, pollfd{listener_.get(), POLLIN, 0}, pollfd{driver.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    eventfd_t count = 0;
    ::eventfd_read(wake_.get(), &count);
    if (driver && has_ended(driver.get())) {
      driver.reset();
      on_change_(false);
    }
    if ((fds[1].revents & POLLIN) != 0) {
      proc::Fd next(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (next && !driver) {
        driver = std::move(next);
        on_change_(true);
      }
    }
    // It hears the end of our side, and ends its own when it is dead.
    if (driver && cut_) ::shutdown(driver.get(), SHUT_WR);
  }
}

bool is_on_leash(const std::string& argv0) { return argv0.ends_with(kProgram); }

int run_on_leash(const std::string& argv0, const std::string& line) {
  const auto address = address_of(argv0 + std::string(kSocket));
  const proc::Fd leash(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!address || !leash || ::connect(leash.get(), generic(*address), sizeof *address) != 0) {
    std::fputs("heliostat: whoever submitted this is gone; it is not run\n", stderr);
    return kNoSubmitter;
  }
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return kNoShell;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == self) ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(kNoShell);
  }
  // Ray makes a session for an entrypoint, so its group is all that it has started and not put elsewhere.
  const pid_t victim = ::getpgrp() == self ? 0 : child;
  // A stop is for the program, which may need its time; this process ends with it.
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  const proc::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  std::array<pollfd, 2> fds{pollfd{leash.get(), POLLIN, 0}, pollfd{ended.get(), POLLIN, 0}};
  while (true) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[1].revents != 0) break;
    if (fds[0].revents != 0 && has_ended(leash.get())) ::kill(victim, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace helio::agent
