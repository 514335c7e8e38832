#pragma once
// The door to zstd: independent frames, each of which can be decompressed alone.

#include "base/error.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace helio {

/// Keeps its working memory between frames. Single thread.
class ZstdCompressor {
 public:
  /// 1 (fast) to 19 (small).
  explicit ZstdCompressor(int level);
  ~ZstdCompressor();
  ZstdCompressor(const ZstdCompressor&) = delete;
  ZstdCompressor& operator=(const ZstdCompressor&) = delete;

  /// One frame with its content's size and checksum. The view is good until the next call.
  Result<std::string_view> frame(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The content of one frame, which must be `size` bytes. Error: internal when the frame is damaged or holds something else. Any thread.
Result<std::string> zstd_decompress(std::string_view frame, std::size_t size);

}  // namespace helio
