#pragma once
// A sealed stream: zstd frames of 1 MiB each and a seek table in zstd's seekable format (a skippable frame at the end), so that a range is
// read by decompressing what holds it, and `zstd -d` gives the whole.

#include "base/error.h"
#include "store/logs/files.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace helio::store::logs {

/// Compresses the first `size` bytes of `from` into a new file, synced. Returns its size.
Result<std::int64_t> write_sealed(const File& from, std::int64_t size, const std::string& to);

/// Any thread.
class SealedReader {
 public:
  /// Error: internal when there is no seek table or it does not fit the file.
  static Result<std::shared_ptr<SealedReader>> open(const std::string& path);

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Up to `max` bytes from `offset`; empty at the end.
  Result<std::string> read(std::int64_t offset, std::size_t max);

 private:
  struct Frame {
    std::int64_t at = 0;      ///< in the file
    std::int64_t offset = 0;  ///< in the content
    std::uint32_t stored = 0;
    std::uint32_t size = 0;
  };
  explicit SealedReader(std::shared_ptr<File> file) : file_(std::move(file)) {}
  Result<std::shared_ptr<const std::string>> content(std::size_t frame);

  std::shared_ptr<File> file_;
  std::vector<Frame> frames_;
  std::int64_t size_ = 0;
  std::mutex mutex_;
  std::size_t last_ = 0;  ///< the frame below, for readers that go on in it
  std::shared_ptr<const std::string> last_content_;
};

}  // namespace helio::store::logs
