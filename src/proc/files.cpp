#include "proc/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace helio::proc {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  // A fifo would keep us until somebody writes.
  const Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return fail(system_error(errno, "open " + path));
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return fail(system_error(errno, "read " + path));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::invalid_argument, "{} is not a regular file", path);
  std::string out;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + path));
    if (n == 0) return out;
    if (out.size() + static_cast<std::size_t>(n) > limit) return fail(ErrorCode::resource_exhausted, "{} is over {} bytes", path, limit);
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

namespace {

Result<void> write_whole(const Fd& fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "write " + path));
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view content, mode_t mode, bool durable) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
  Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return fail(system_error(errno, "write " + path));
  Result<void> done = write_whole(fd, content, path);
  // The umask may have taken bits away; whoever gives a mode means it.
  if (done && fchmod(fd.get(), mode) != 0) done = fail(system_error(errno, "chmod " + path));
  if (done && durable && fsync(fd.get()) != 0) done = fail(system_error(errno, "sync " + path));
  fd.reset();
  if (done && rename(temporary.c_str(), path.c_str()) != 0) done = fail(system_error(errno, "rename to " + path));
  if (!done) {
    unlink(temporary.c_str());
    return done;
  }
  if (durable) {
    const std::size_t slash = path.find_last_of('/');
    const Fd folder(open(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || fsync(folder.get()) != 0) return fail(system_error(errno, "sync the folder of " + path));
  }
  return {};
}

Result<void> make_folders(const std::string& path, mode_t mode) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), mode) != 0 && errno != EEXIST) return fail(system_error(errno, "make folder " + part));
    if (end == std::string::npos) break;
  }
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return fail(system_error(errno, "make folder " + path));
  if (!S_ISDIR(info.st_mode)) return fail(ErrorCode::already_exists, "{} is not a folder", path);
  return {};
}

namespace {

struct CloseFolder {
  void operator()(DIR* dir) const { closedir(dir); }
};

constexpr int kMaxDepth = 256;

/// Removes `name` in `parent`; 0 or an errno. The folder is opened without following links, so nobody can lead us elsewhere.
int wipe_at(int parent, const char* name, int depth) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno == EACCES) {  // a folder without write permission holds it
    fchmod(parent, 0700);
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  }
  if (errno != EISDIR && errno != EPERM) return errno;
  if (depth > kMaxDepth) return ELOOP;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0) {
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (fd < 0) return errno == ENOENT ? 0 : errno;
  const std::unique_ptr<DIR, CloseFolder> dir(fdopendir(fd));
  if (!dir) {
    const int error = errno;
    close(fd);
    return error;
  }
  int first = 0;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view item = entry->d_name;
    if (item == "." || item == "..") continue;
    const int error = wipe_at(fd, entry->d_name, depth + 1);
    if (first == 0) first = error;
  }
  if (first != 0) return first;
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  if (errno == EACCES) {
    fchmod(parent, 0700);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  }
  return errno;
}

}  // namespace

Result<void> wipe(const std::string& path) {
  int error = 0;
  // Somebody may still be writing while the tree goes; a second look finds what the first one missed.
  for (int attempt = 0; attempt < 3; ++attempt) {
    error = wipe_at(AT_FDCWD, path.c_str(), 0);
    if (error == 0) return {};
    if (error != ENOTEMPTY) break;
  }
  return fail(system_error(error, "wipe " + path));
}

}  // namespace helio::proc
