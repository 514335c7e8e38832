#include "store/logs/sealed.h"

#include "base/zstd.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace helio::store::logs {
namespace {

constexpr std::size_t kFrameSize = 1U << 20U;
constexpr int kLevel = 1;  // log lines gain little from more, and the daemon's CPU time counts
// https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md
constexpr std::uint32_t kSkippableMagic = 0x184D2A5E;
constexpr std::uint32_t kSeekableMagic = 0x8F92EAB1;
constexpr std::size_t kFooterSize = 9;
constexpr std::size_t kHeaderSize = 8;
constexpr std::size_t kEntrySize = 8;

void put_u32(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xffU);
}
std::uint32_t get_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

}  // namespace

Result<std::int64_t> write_sealed(const File& from, std::int64_t size, const std::string& to) {
  HELIO_TRY(out, File::open(to, O_WRONLY | O_CREAT | O_TRUNC));
  ZstdCompressor compressor(kLevel);
  std::string entries;
  std::uint32_t count = 0;
  std::int64_t at = 0;
  for (std::int64_t offset = 0; offset < size;) {
    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(kFrameSize, size - offset));
    HELIO_TRY(bytes, from.read(offset, n));
    if (bytes.size() != n) return fail(ErrorCode::internal, "{}: the log has {} bytes instead of {}", to, offset, size);
    HELIO_TRY(frame, compressor.frame(bytes));
    HELIO_CHECK_OK(out->write(at, frame));
    put_u32(entries, static_cast<std::uint32_t>(frame.size()));
    put_u32(entries, static_cast<std::uint32_t>(n));
    ++count;
    at += static_cast<std::int64_t>(frame.size());
    offset += static_cast<std::int64_t>(n);
  }
  std::string table;
  put_u32(table, kSkippableMagic);
  put_u32(table, static_cast<std::uint32_t>(entries.size() + kFooterSize));
  table += entries;
  put_u32(table, count);
  table += '\0';  // descriptor: no checksums here, the frames have their own
  put_u32(table, kSeekableMagic);
  HELIO_CHECK_OK(out->write(at, table));
  HELIO_CHECK_OK(out->sync());
  return at + static_cast<std::int64_t>(table.size());
}

Result<std::shared_ptr<SealedReader>> SealedReader::open(const std::string& path) {
  HELIO_TRY(file, File::open(path, O_RDONLY));
  HELIO_TRY(total, file->size());
  const auto damaged = [&] { return fail(ErrorCode::internal, "{}: damaged seek table", path); };
  if (total < static_cast<std::int64_t>(kHeaderSize + kFooterSize)) return damaged();
  HELIO_TRY(footer, file->read(total - static_cast<std::int64_t>(kFooterSize), kFooterSize));
  if (footer.size() != kFooterSize || get_u32(footer, 5) != kSeekableMagic || footer[4] != '\0') return damaged();
  const std::size_t count = get_u32(footer, 0);
  const std::size_t table_size = kHeaderSize + count * kEntrySize + kFooterSize;
  if (static_cast<std::int64_t>(table_size) > total) return damaged();
  const std::int64_t table_at = total - static_cast<std::int64_t>(table_size);
  HELIO_TRY(table, file->read(table_at, table_size));
  if (table.size() != table_size || get_u32(table, 0) != kSkippableMagic || get_u32(table, 4) != table_size - kHeaderSize) return damaged();

  std::shared_ptr<SealedReader> reader(new SealedReader(std::move(file)));
  reader->frames_.reserve(count);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Frame frame{at, reader->size_, get_u32(table, kHeaderSize + i * kEntrySize), get_u32(table, kHeaderSize + i * kEntrySize + 4)};
    at += frame.stored;
    reader->size_ += frame.size;
    reader->frames_.push_back(frame);
  }
  if (at != table_at) return damaged();
  return reader;
}

Result<std::shared_ptr<const std::string>> SealedReader::content(std::size_t index) {
  {
    const std::lock_guard lock(mutex_);
    if (last_content_ && last_ == index) return last_content_;
  }
  const Frame& frame = frames_[index];
  HELIO_TRY(stored, file_->read(frame.at, frame.stored));
  HELIO_TRY(bytes, zstd_decompress(stored, frame.size));
  auto content = std::make_shared<const std::string>(std::move(bytes));
  const std::lock_guard lock(mutex_);
  last_ = index;
  last_content_ = content;
  return content;
}

Result<std::string> SealedReader::read(std::int64_t offset, std::size_t max) {
  std::string out;
  if (offset >= size_ || max == 0) return out;
  auto frame = std::ranges::upper_bound(frames_, offset, {}, &Frame::offset);
  auto index = static_cast<std::size_t>(frame - frames_.begin()) - 1;
  while (out.size() < max && index < frames_.size()) {
    HELIO_TRY(bytes, content(index));
    out.append(*bytes, static_cast<std::size_t>(offset - frames_[index].offset), max - out.size());
    ++index;
    if (index < frames_.size()) offset = frames_[index].offset;
  }
  return out;
}

}  // namespace helio::store::logs
