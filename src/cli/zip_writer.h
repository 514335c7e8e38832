#pragma once
// Writes a zip file: the same bytes for the same entries, whatever the time, user or machine.

#include "base/error.h"
#include "base/hash.h"
#include "base/units.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace helio::cli {

class ZipWriter {
 public:
  /// Writes to `fd`, at most `limit` bytes.
  ZipWriter(int fd, Bytes limit) : fd_(fd), limit_(limit.n) {}
  /// Adds a file from `source`. Errors: resource_exhausted over the limit (over() tells it from a full disk), invalid_argument for what
  /// the format cannot hold, conflict when the file changes while it is read.
  Result<void> add(const std::string& name, int source, const std::string& source_name, bool executable);
  /// The directory at the end; nothing can be added after it.
  Result<void> finish();
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] Bytes written() const { return {written_}; }
  /// SHA-256 of everything written, once, after finish().
  std::string digest() { return digest_.finish_hex(); }

 private:
  Result<void> put(std::string_view bytes);

  int fd_;
  std::int64_t limit_;
  std::int64_t written_ = 0;
  bool over_ = false;
  Sha256 digest_;
  std::string directory_;
  int entries_ = 0;
};

}  // namespace helio::cli
