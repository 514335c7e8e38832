#pragma once
#include "base/error.h"

#include <memory>
#include <string>
#include <string_view>

namespace helio::store {

/// The data folder's lock: held by the one running daemon, given back by the kernel when it dies in any way.
class LockFile {
 public:
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// Takes the lock and writes `holder` (one line that ends with its pid, such as "heliostatd 0.1.0 pid 4711") into the file for others to
  /// read. Waits only for a holder that was killed and is still ending. Errors: conflict when somebody else holds it, with what that one
  /// wrote; those of the file system.
  static Result<std::unique_ptr<LockFile>> acquire(const std::string& path, std::string_view holder);
  /// The file is still the one at its path: if not, the lock keeps nobody out any more. True when that cannot be told.
  [[nodiscard]] bool is_in_place() const;

 private:
  LockFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

}  // namespace helio::store
