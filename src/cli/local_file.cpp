#include "cli/local_file.h"

#include "base/units.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace helio::cli {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<TempFile> TempFile::create() {
  const char* folder = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/helio-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return fail(system_error(errno, "make a temporary file " + path));
  return TempFile(std::move(path), fd);
}

TempFile::~TempFile() {
  if (fd_.valid()) ::unlink(path_.c_str());
}

namespace {

/// Names of what is open already: opening one again waits for nobody who is not there.
bool is_inherited(std::string_view path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const bool inherited = is_inherited(path);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC | (inherited ? 0 : O_NONBLOCK)));
  if (!fd.valid()) return fail(system_error(errno, "read " + path));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail(system_error(errno, "read " + path));
  if (S_ISDIR(info.st_mode)) return fail(ErrorCode::invalid_argument, "{} is a folder, not a file", path);
  if (!inherited && !S_ISREG(info.st_mode)) return fail(ErrorCode::invalid_argument, "{} is not a regular file", path);
  std::string out;
  char buffer[64 << 10];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n == 0) return out;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + path));
    if (out.size() + static_cast<std::size_t>(n) > limit) {
      return fail(ErrorCode::resource_exhausted, "{} has more than {}", path, format_bytes({static_cast<std::int64_t>(limit)}));
    }
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<std::string> read_user_file(std::string_view flag, const std::string& path) {
  auto text = read_file(path, kUserFileLimit);
  if (!text) return fail(std::move(text).error().during(std::string(flag)));
  return text;
}

Result<std::string> absolute_path(const std::string& path) {
  if (path.empty()) return fail(ErrorCode::invalid_argument, "a path is empty");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return fail(system_error(error.value(), "current folder, below which " + path + " lies"));
  return absolute.lexically_normal().string();
}

std::string tail_of_file(const std::string& path, std::size_t bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const off_t from = std::max<off_t>(0, info.st_size - static_cast<off_t>(bytes));
  std::string tail(static_cast<std::size_t>(info.st_size - from), '\0');
  const ssize_t n = ::pread(fd.get(), tail.data(), tail.size(), from);
  tail.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (from == 0) return tail;
  if (const auto line = tail.find('\n'); line != std::string::npos) tail.erase(0, line + 1);
  return tail;
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "write"));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace helio::cli
