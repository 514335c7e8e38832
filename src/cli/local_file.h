#pragma once
#include "base/error.h"

#include <string>
#include <string_view>

namespace helio::cli {

/// A file descriptor that closes itself.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

/// A file in $TMPDIR that is deleted with the object.
class TempFile {
 public:
  static Result<TempFile> create();
  TempFile(TempFile&&) noexcept = default;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  TempFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  UniqueFd fd_;
};

/// Whole content of a regular file, or of a descriptor that the shell gave us (/dev/stdin, /dev/fd/63 of <(COMMAND)).
/// Errors: not_found, permission_denied, invalid_argument for anything else (a device has no end, a fifo may have no writer),
/// resource_exhausted above `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit = 64U << 20U);
/// What the daemon takes in one request, and so the most that a file of a user's can say.
inline constexpr std::size_t kUserFileLimit = 1U << 20U;
/// read_file() of at most kUserFileLimit; errors name the flag.
Result<std::string> read_user_file(std::string_view flag, const std::string& path);
/// Absolute, without "." and "..". Errors: invalid_argument for an empty path, not_found when the current folder was removed.
Result<std::string> absolute_path(const std::string& path);
/// Last lines of a file, at most `bytes` of it; empty when there is none.
std::string tail_of_file(const std::string& path, std::size_t bytes);
/// All of it, whatever the number of write calls.
Result<void> write_all(int fd, std::string_view bytes);

}  // namespace helio::cli
