#pragma once
// Small synchronous file work that the programs share.

#include "base/error.h"

#include <sys/types.h>
#include <string>
#include <string_view>

namespace helio::proc {

/// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// The whole file. Errors: not_found, permission_denied, invalid_argument for what is no regular file, resource_exhausted above `limit`
/// bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit = 64U << 20U);
/// Replaces the file in one step (temporary neighbour, rename), so that a reader sees the old or the new content.
/// `durable`: synced to disk before this returns.
Result<void> write_file(const std::string& path, std::string_view content, mode_t mode = 0600, bool durable = false);
/// Makes the folder and those above it; an existing one is fine and keeps its mode.
Result<void> make_folders(const std::string& path, mode_t mode = 0700);
/// Removes a file or a tree without following links, through folders that forbid writing too. Not there: success.
Result<void> wipe(const std::string& path);

}  // namespace helio::proc
