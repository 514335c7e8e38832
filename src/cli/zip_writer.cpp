#include "cli/zip_writer.h"

#include "cli/local_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cerrno>
#include <limits>
#include <memory>

namespace helio::cli {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kEndOfDirectory = 0x06054b50;
constexpr std::uint16_t kVersion = 20;
constexpr std::uint16_t kMadeByUnix = (3U << 8U) | kVersion;
constexpr std::uint16_t kUtf8Names = 1U << 11U;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;
constexpr std::uint16_t kFirstDate = (1U << 5U) | 1U;  // 1980-01-01: content alone decides the digest
constexpr int kMostEntries = 65535;
constexpr int kRawDeflate = -15;
constexpr std::int64_t kMostBytes = std::numeric_limits<std::uint32_t>::max();

/// Little endian, appended.
template <class Integer>
void put_number(std::string& out, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffU);
}

struct DeflateEnd {
  void operator()(z_stream* stream) const { deflateEnd(stream); }
};

struct Packed {
  std::string data;
  std::uint32_t crc = 0;
  std::uint32_t size = 0;  ///< unpacked
  std::uint16_t method = kDeflated;
};

/// Feeds `input` to the compressor and moves what it gives to `out`. False when it failed.
bool squeeze(z_stream& stream, std::string_view input, bool last, std::string& out) {
  char buffer[64 << 10];
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));  // NOLINT: zlib reads only, its type is older than const
  stream.avail_in = static_cast<uInt>(input.size());
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    stream.avail_out = sizeof buffer;
    const int state = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    if (state == Z_STREAM_ERROR) return false;
    out.append(buffer, sizeof buffer - stream.avail_out);
    if (stream.avail_out != 0) return true;
  }
}

Result<Packed> pack(int source, const std::string& name, std::int64_t limit) {
  struct stat info{};
  if (::fstat(source, &info) != 0) return fail(system_error(errno, "read " + name));
  if (info.st_size > kMostBytes) return fail(ErrorCode::invalid_argument, "{} has more than 4 GiB, which a zip cannot hold", name);
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawDeflate, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail(ErrorCode::resource_exhausted, "no memory to compress {}", name);
  }
  const std::unique_ptr<z_stream, DeflateEnd> end(&stream);
  Packed out;
  out.size = static_cast<std::uint32_t>(info.st_size);
  out.crc = static_cast<std::uint32_t>(crc32(0, nullptr, 0));
  char buffer[64 << 10];
  std::int64_t left = info.st_size;  // a file that grows meanwhile must not spoil its entry
  while (left > 0 && static_cast<std::int64_t>(out.data.size()) <= limit) {
    const ssize_t n = ::read(source, buffer, static_cast<std::size_t>(std::min<std::int64_t>(left, sizeof buffer)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + name));
    if (n == 0) return fail(ErrorCode::conflict, "{} became shorter while it was packed; try again", name);
    out.crc = static_cast<std::uint32_t>(crc32(out.crc, reinterpret_cast<const Bytef*>(buffer), static_cast<uInt>(n)));  // NOLINT
    if (!squeeze(stream, {buffer, static_cast<std::size_t>(n)}, false, out.data))
      return fail(ErrorCode::internal, "compressing {} failed", name);
    left -= n;
  }
  if (!squeeze(stream, {}, true, out.data)) return fail(ErrorCode::internal, "compressing {} failed", name);
  if (out.size == 0) {
    out.data.clear();
    out.method = kStored;
  }
  return out;
}

}  // namespace

Result<void> ZipWriter::put(std::string_view bytes) {
  if (written_ + static_cast<std::int64_t>(bytes.size()) > limit_) {
    over_ = true;
    return fail(ErrorCode::resource_exhausted, "over the limit of {}", format_bytes({limit_}));
  }
  HELIO_CHECK_OK(write_all(fd_, bytes));
  digest_.update(bytes);
  written_ += static_cast<std::int64_t>(bytes.size());
  return {};
}

Result<void> ZipWriter::add(const std::string& name, int source, const std::string& source_name, bool executable) {
  if (name.size() > std::numeric_limits<std::uint16_t>::max()) return fail(ErrorCode::invalid_argument, "the name {} is too long", name);
  if (++entries_ > kMostEntries)
    return fail(ErrorCode::invalid_argument, "more than {} files; leave some out with --exclude", kMostEntries);
  HELIO_TRY(packed, pack(source, source_name, limit_ - written_));
  std::string middle;  // the fields that both headers share
  put_number(middle, kVersion);
  put_number(middle, kUtf8Names);
  put_number(middle, packed.method);
  put_number(middle, std::uint16_t{0});
  put_number(middle, kFirstDate);
  put_number(middle, packed.crc);
  put_number(middle, static_cast<std::uint32_t>(packed.data.size()));
  put_number(middle, packed.size);
  put_number(middle, static_cast<std::uint16_t>(name.size()));
  put_number(middle, std::uint16_t{0});  // extra fields

  put_number(directory_, kDirectoryEntry);
  put_number(directory_, kMadeByUnix);
  directory_ += middle;
  put_number(directory_, std::uint16_t{0});  // comment
  put_number(directory_, std::uint16_t{0});  // disk
  put_number(directory_, std::uint16_t{0});  // internal attributes
  put_number(directory_, static_cast<std::uint32_t>(S_IFREG | (executable ? 0755U : 0644U)) << 16U);
  put_number(directory_, static_cast<std::uint32_t>(written_));
  directory_ += name;

  std::string header;
  put_number(header, kLocalHeader);
  header += middle + name;
  HELIO_CHECK_OK(put(header));
  return put(packed.data);
}

Result<void> ZipWriter::finish() {
  const auto start = static_cast<std::uint32_t>(written_);
  const auto size = static_cast<std::uint32_t>(directory_.size());
  put_number(directory_, kEndOfDirectory);
  put_number(directory_, std::uint32_t{0});  // disks
  put_number(directory_, static_cast<std::uint16_t>(entries_));
  put_number(directory_, static_cast<std::uint16_t>(entries_));
  put_number(directory_, size);
  put_number(directory_, start);
  put_number(directory_, std::uint16_t{0});  // comment
  return put(directory_);
}

}  // namespace helio::cli
