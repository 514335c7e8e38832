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

/// Whole content. Errors: not_found, permission_denied, invalid_argument for a folder.
Result<std::string> read_file(const std::string& path);
/// Last lines of a file, at most `bytes` of it; empty when there is none.
std::string tail_of_file(const std::string& path, std::size_t bytes);
/// All of it, whatever the number of write calls.
Result<void> write_all(int fd, std::string_view bytes);

}  // namespace helio::cli
