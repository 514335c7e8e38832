#include "auth/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <utility>

namespace helio::auth {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "write " + path));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd) != 0) return fail(system_error(errno, "sync " + path));
  return {};
}

Result<void> sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return fail(system_error(errno, "sync " + folder));
  return {};
}

}  // namespace

Result<std::optional<std::string>> read_secret_file(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0) {
    if (errno == ENOENT) return std::optional<std::string>{};
    return fail(system_error(errno, "open " + path));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail(system_error(errno, "stat " + path));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::precondition_failed, "{} is not a regular file", path);
  if ((info.st_mode & 077) != 0) {
    return fail(ErrorCode::precondition_failed, "{} has mode {:o}: others may use the secret in it; run: chmod 600 {}", path,
                info.st_mode & 0777, path);
  }
  if (info.st_uid != ::geteuid()) {
    return fail(ErrorCode::precondition_failed, "{} belongs to user {}, not to {}", path, info.st_uid, ::geteuid());
  }
  std::array<char, 4096> buffer{};
  std::string content;
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + path));
    if (n == 0) return std::optional<std::string>(std::move(content));
    content.append(buffer.data(), static_cast<std::size_t>(n));
    if (content.size() > buffer.size()) return fail(ErrorCode::precondition_failed, "{} is too large for a secret", path);
  }
}

Result<void> write_secret_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());  // of a start that was killed half-way
  Result<void> written;
  {
    const Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd.get() < 0) return fail(system_error(errno, "create " + temporary));
    written = write_all(fd.get(), content, temporary);
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = fail(system_error(errno, "rename to " + path));
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return sync_folder_of(path);
}

}  // namespace helio::auth
