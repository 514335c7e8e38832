#include "store/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace helio::store {
namespace {

std::string holder_in(int fd) {
  std::array<char, 256> text;
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  if (n <= 0) return {};
  std::string out(text.data(), static_cast<std::size_t>(n));
  return out.substr(0, out.find('\n'));
}

}  // namespace

LockFile::~LockFile() {
  // The text stays: without the lock it means nothing, and removing the file would let two holders lock two files.
  ::close(fd_);
}

Result<std::unique_ptr<LockFile>> LockFile::acquire(const std::string& path, std::string_view holder) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(system_error(errno, "open lock " + path));
  std::unique_ptr<LockFile> lock(new LockFile(fd));
  int rc = 0;
  do {
    rc = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) {
    if (errno != EWOULDBLOCK) return fail(system_error(errno, "lock " + path));
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

}  // namespace helio::store
