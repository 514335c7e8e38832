#include "cli/local_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
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

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail(system_error(errno, "read " + path));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail(system_error(errno, "read " + path));
  if (S_ISDIR(info.st_mode)) return fail(ErrorCode::invalid_argument, "{} is a folder, not a file", path);
  std::string out;
  char buffer[64 << 10];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n == 0) return out;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + path));
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

std::string tail_of_file(const std::string& path, std::size_t bytes) {
  const auto text = read_file(path);
  if (!text) return {};
  if (text->size() <= bytes) return *text;
  std::string tail = text->substr(text->size() - bytes);
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
