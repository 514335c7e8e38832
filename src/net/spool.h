#pragma once
#include "base/error.h"

#include <string>
#include <string_view>

namespace helio::net {

/// A request body on disk; the file goes with the object. Worker threads.
class SpoolFile {
 public:
  SpoolFile() = default;
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  /// Mode 0600. Errors: those of the file system.
  Result<void> open(const std::string& folder);
  /// Errors: storage_full.
  Result<void> append(std::string_view bytes);
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace helio::net
