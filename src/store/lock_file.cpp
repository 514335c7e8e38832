#include "store/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

namespace helio::store {
namespace {

constexpr std::chrono::seconds kDying{5};  ///< for the kernel to end the threads of a process that was killed

std::string holder_in(int fd) {
  std::array<char, 256> text;
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  if (n <= 0) return {};
  std::string out(text.data(), static_cast<std::size_t>(n));
  return out.substr(0, out.find('\n'));
}

/// The holder was killed, but threads of it still end and keep its files open: only a leader that is a zombie, or gone, says so.
bool is_dying(std::string_view holder) {
  const std::size_t at = holder.rfind("pid ");
  if (at == std::string_view::npos) return false;
  int pid = 0;
  if (std::from_chars(holder.data() + at + 4, holder.data() + holder.size(), pid).ec != std::errc() || pid <= 0) return false;
  const int fd = ::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  std::array<char, 512> text;
  const ssize_t n = ::read(fd, text.data(), text.size());
  ::close(fd);
  const std::string_view stat(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string_view::npos || stat.substr(name_end + 2, 1) == "Z" || stat.substr(name_end + 2, 1) == "X";
}

bool is_passing(std::string_view holder) { return holder.empty() || is_dying(holder); }

/// 0, or errno.
int take(int fd) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

LockFile::~LockFile() {
  // The text stays: without the lock it means nothing, and removing the file would let two holders lock two files.
  ::close(fd_);
}

Result<std::unique_ptr<LockFile>> LockFile::acquire(const std::string& path, std::string_view holder) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(system_error(errno, "open lock " + path));
  std::unique_ptr<LockFile> lock(new LockFile(fd, path));
  // A blocking flock() would also wait for one that is well. Nobody who holds the lock leaves the file empty for long: that one is about to
  // write, or only asks who holds it.
  const auto deadline = std::chrono::steady_clock::now() + kDying;
  int refused = take(fd);
  while (refused == EWOULDBLOCK && is_passing(holder_in(fd)) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    refused = take(fd);
  }
  if (refused != 0) {
    if (refused != EWOULDBLOCK) return fail(system_error(refused, "lock " + path));
    std::string who = holder_in(fd);
    if (who.empty()) who = "another process";
    return fail(Error(ErrorCode::conflict, fmt::format("{} is held by {}", path, who)).with("holder", who));
  }
  std::string line(holder.substr(0, holder.find('\n')));
  line += '\n';
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return fail(system_error(errno, "write lock " + path));
  }
  return lock;
}

bool LockFile::is_in_place() const {
  struct stat ours{};
  struct stat there{};
  if (::stat(path_.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
  return ::fstat(fd_, &ours) != 0 || (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino);
}

}  // namespace helio::store
