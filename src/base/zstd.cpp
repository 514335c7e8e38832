#include "base/zstd.h"

#include "base/check.h"

#include <zstd.h>

namespace helio {

struct ZstdCompressor::Impl {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::string out;
};

ZstdCompressor::ZstdCompressor(int level) : impl_(std::make_unique<Impl>()) {
  HELIO_CHECK(impl_->context != nullptr, "no memory for zstd");
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_checksumFlag, 1);
}

ZstdCompressor::~ZstdCompressor() { ZSTD_freeCCtx(impl_->context); }

Result<std::string_view> ZstdCompressor::frame(std::string_view bytes) {
  const std::size_t bound = ZSTD_compressBound(bytes.size());
  if (impl_->out.size() < bound) impl_->out.resize(bound);
  const std::size_t n = ZSTD_compress2(impl_->context, impl_->out.data(), impl_->out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(n) != 0) return fail(ErrorCode::internal, "zstd: {}", ZSTD_getErrorName(n));
  return std::string_view(impl_->out).substr(0, n);
}

Result<std::string> zstd_decompress(std::string_view frame, std::size_t size) {
  // The frame's own claim comes first, so that `size` bytes are only allocated for a frame that holds them.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size) return fail(ErrorCode::internal, "zstd: not a frame of {} bytes", size);
  std::string out;
  std::size_t n = 0;
  out.resize_and_overwrite(size, [&](char* data, std::size_t /*allocated*/) {
    n = ZSTD_decompress(data, size, frame.data(), frame.size());
    return ZSTD_isError(n) != 0 ? 0 : n;
  });
  if (ZSTD_isError(n) != 0) return fail(ErrorCode::internal, "zstd: {}", ZSTD_getErrorName(n));
  if (n != size) return fail(ErrorCode::internal, "zstd: {} bytes instead of {}", n, size);
  return out;
}

}  // namespace helio
