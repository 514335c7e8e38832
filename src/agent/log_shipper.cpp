#include "agent/log_shipper.h"

#include "proc/files.h"
#include "ray/log_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

namespace helio::agent {

namespace {

constexpr std::int64_t kReserve = 1LL << 20;   ///< of the window, for the driver's log alone
constexpr std::int64_t kMinLimit = 1LL << 20;  ///< no stream is cut below this
constexpr std::size_t kLineLook = 64U << 10U;  ///< looked through at once for the first line
constexpr std::size_t kLongLine = 4U << 10U;   ///< a line without an end is a line, too

struct FileId {
  ino_t inode = 0;
  std::int64_t size = 0;
};
std::optional<FileId> file_id(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  return FileId{st.st_ino, st.st_size};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe): the handle is ours alone
    if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

LogShipper::LogShipper(ShipperOptions options, ShipperOut out) : options_(std::move(options)), out_(std::move(out)) {}

void LogShipper::connected() {
  connected_ = true;
  for (auto& [id, stream] : streams_) {
    stream.announced = stream.granted = stream.end_sent = stream.end_acked = false;
    stream.sent = stream.acked;
  }
  pump();
}

void LogShipper::disconnected() { connected_ = false; }

void LogShipper::resume(std::int32_t id, std::int64_t offset) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  stream.granted = true;
  stream.sent = stream.acked = std::clamp<std::int64_t>(offset, 0, total(stream));
  stream.end_sent = false;
}

void LogShipper::acknowledge(std::int32_t id, std::int64_t offset, bool ended) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  stream.acked = std::clamp(offset, stream.acked, std::max(stream.sent, stream.acked));
  stream.end_acked = stream.end_acked || ended;
  // A rotated file that is whole on the other side is not needed any more.
  while (stream.segments.size() > 1 && stream.acked >= stream.segments.front().base + stream.segments.front().size) {
    stream.retired.insert(stream.segments.front().inode);
    stream.segments.pop_front();
  }
}

bool LogShipper::scan() {
  bool grew = false;
  for (const LocalLog& local : options_.locals) grew = scan_file(local.path, local.stream, local.kind, 0) || grew;
  if (session_dir_.empty()) {
    if (auto session = ray::find_session(options_.temp_dir)) session_dir_ = std::move(*session);
  }
  if (!session_dir_.empty()) {
    grew = scan_folder(session_dir_ + "/logs") || grew;
    grew = scan_folder(session_dir_ + "/logs/jobs") || grew;
  }
  if (grew && !first_line_) look_for_first_line();
  return grew;
}

bool LogShipper::scan_folder(const std::string& folder) {
  struct Found {
    std::string path;
    ray::LogName log;
  };
  std::vector<Found> found;
  for (const std::string& name : names_in(folder)) {
    auto log = ray::classify_log(name, options_.submission_id);
    if (log && (!options_.driver_only || log->stream == "driver")) found.push_back({folder + "/" + name, std::move(*log)});
  }
  // Oldest first: the predecessors of a rotated file come before it.
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.log.rotation > b.log.rotation; });
  bool grew = false;
  for (const Found& file : found) grew = scan_file(file.path, file.log.stream, file.log.kind, file.log.rotation) || grew;
  return grew;
}

bool LogShipper::scan_file(const std::string& path, const std::string& name, const std::string& kind, int rotation) {
  const auto id = file_id(path);
  if (!id) return false;
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) {
    if (id->size == 0) return false;  // most workers never write anything
    Stream& stream = stream_of(name, kind);
    stream.segments.push_back({path, id->inode, 0, id->size});
    return true;
  }
  Stream& stream = streams_.at(known->second);
  for (Segment& segment : stream.segments) {
    if (segment.inode != id->inode) continue;
    segment.path = path;
    const bool last = &segment == &stream.segments.back();
    if (!last || id->size <= segment.size) return false;
    segment.size = id->size;
    return true;
  }
  // A predecessor that was shipped whole is old; anything else is the stream's next part, because predecessors are seen oldest first.
  if (rotation != 0 && stream.retired.contains(id->inode)) return false;
  rotate(stream, path, id->inode, id->size);
  return id->size > 0;
}

void LogShipper::rotate(Stream& stream, const std::string& path, ino_t inode, std::int64_t size) {
  std::int64_t base = 0;
  if (!stream.segments.empty()) {
    // What was written to the old file after the last look belongs to the stream, too.
    Segment& last = stream.segments.back();
    for (int n = 0; n < 10; ++n) {
      const std::string candidate = n == 0 ? last.path : fmt::format("{}.{}", path, n);
      const auto id = file_id(candidate);
      if (!id || id->inode != last.inode) continue;
      last.path = candidate;
      last.size = std::max(last.size, id->size);
      break;
    }
    base = last.base + last.size;
  }
  stream.segments.push_back({path, inode, base, size});
}

LogShipper::Stream& LogShipper::stream_of(const std::string& name, const std::string& kind) {
  const std::int32_t id = ++last_id_;
  by_name_[name] = id;
  Stream& stream = streams_[id];
  stream.id = id;
  stream.name = name;
  stream.kind = kind;
  stream.limit = limit_of(kind);
  if (stream.limit > 0) {
    stream.notice = fmt::format("\n[heliostat: this log is cut here, after {}: the job's log_limit is {}]\n", format_bytes({stream.limit}),
                                format_bytes(options_.log_limit));
  }
  return stream;
}

std::int64_t LogShipper::limit_of(const std::string& kind) const {
  if (options_.log_limit.n <= 0) return 0;
  const std::int64_t share = options_.log_limit.n / (kind == "driver" ? 2 : 16);
  return std::max(share, std::min(kMinLimit, options_.log_limit.n));
}

std::int64_t LogShipper::content(const Stream& stream) {
  return stream.segments.empty() ? 0 : stream.segments.back().base + stream.segments.back().size;
}

std::int64_t LogShipper::total(const Stream& stream) {
  const std::int64_t size = content(stream);
  if (stream.limit <= 0 || size <= stream.limit) return size;
  return stream.limit + static_cast<std::int64_t>(stream.notice.size());
}

std::int64_t LogShipper::in_flight() const {
  std::int64_t bytes = 0;
  for (const auto& [id, stream] : streams_) bytes += stream.sent - stream.acked;
  return bytes;
}

void LogShipper::look_for_first_line() {
  const auto found = by_name_.find("driver");
  if (found == by_name_.end()) return;
  Stream& stream = streams_.at(found->second);
  while (!first_line_ && first_line_at_ < content(stream)) {
    const Segment& segment = stream.segments.front();
    const auto piece = read_segment(segment, first_line_at_ - segment.base, kLineLook);
    if (!piece || piece->empty()) return;
    const std::string& text = *piece;
    std::size_t from = 0;
    while (!first_line_ && from < text.size()) {
      const std::size_t end = text.find('\n', from);
      const std::string_view line = std::string_view(text).substr(from, end == std::string::npos ? end : end - from);
      if (end == std::string::npos && line.size() < kLongLine) break;  // not whole yet
      first_line_ = !line.empty() && !ray::is_rays_own_line(line);
      from = end == std::string::npos ? text.size() : end + 1;
    }
    if (from == 0) return;
    first_line_at_ += static_cast<std::int64_t>(from);
  }
}

void LogShipper::pump() {
  if (!connected_) return;
  std::int64_t flight = in_flight();
  for (auto& [id, stream] : streams_) {
    if (!stream.announced) announce(stream);
  }
  bool sent = true;
  while (sent && flight < kWindowBytes) {
    sent = false;
    for (const bool driver : {true, false}) {
      for (auto& [id, stream] : streams_) {
        if ((stream.kind == "driver") != driver || !stream.granted) continue;
        const std::int64_t room = driver ? kWindowBytes : kWindowBytes - kReserve;
        // The driver's log goes first, all of it; the others take turns.
        do {
          const std::int64_t before = stream.sent;
          if (flight >= room || stream.sent >= total(stream)) break;
          if (!send_piece(stream)) return;
          flight += stream.sent - before;
          sent = true;
        } while (driver);
      }
    }
  }
  if (!finished_) return;
  for (auto& [id, stream] : streams_) {
    if (!stream.granted || stream.end_sent || stream.sent < total(stream)) continue;
    stream.end_sent = out_.announce({.id = id, .name = stream.name, .kind = stream.kind, .offset = Bytes{stream.sent}, .ended = true});
  }
}

void LogShipper::announce(Stream& stream) {
  stream.announced = out_.announce({.id = stream.id, .name = stream.name, .kind = stream.kind, .offset = {}, .ended = false});
}

bool LogShipper::send_piece(Stream& stream) {
  auto piece = read(stream, stream.sent);
  if (!piece && piece.error().code() != ErrorCode::not_found) return false;
  std::string bytes = piece ? std::move(*piece) : std::string();
  if (bytes.empty()) {
    // The file was removed before it was read: what it held is marked as missing, byte for byte, so that offsets stay true.
    bytes.assign(static_cast<std::size_t>(std::min<std::int64_t>(total(stream) - stream.sent, kPieceBytes)), '?');
    bytes.back() = '\n';
  }
  if (!out_.piece(stream.id, stream.sent, bytes)) return false;
  stream.sent += static_cast<std::int64_t>(bytes.size());
  return true;
}

Result<std::string> LogShipper::read(Stream& stream, std::int64_t offset) {
  const bool cut = stream.limit > 0 && content(stream) > stream.limit;
  if (cut && offset >= stream.limit) return stream.notice.substr(static_cast<std::size_t>(offset - stream.limit), kPieceBytes);
  std::size_t max = kPieceBytes;
  if (cut) max = static_cast<std::size_t>(std::min<std::int64_t>(stream.limit - offset, kPieceBytes));
  for (const Segment& segment : stream.segments) {
    if (offset >= segment.base && offset < segment.base + segment.size) return read_segment(segment, offset - segment.base, max);
  }
  return fail(ErrorCode::not_found, "no file holds this part");
}

Result<std::string> LogShipper::read_segment(const Segment& segment, std::int64_t offset, std::size_t max) {
  // Files are not held open, so that there is no limit to how many there are; a rotated one is found by its inode.
  for (int n = 0; n < 10; ++n) {
    const std::string path = n == 0 ? segment.path : fmt::format("{}.{}", segment.path, n);
    const proc::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd && errno != ENOENT) return fail(system_error(errno, "read a log"));
    struct stat st{};
    if (!fd || ::fstat(fd.get(), &st) != 0 || st.st_ino != segment.inode) continue;
    std::string bytes;
    bytes.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(segment.size - offset, 0, static_cast<std::int64_t>(max))));
    const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), offset);
    if (got < 0) return fail(system_error(errno, "read a log"));
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  return fail(ErrorCode::not_found, "the log is gone");
}

void LogShipper::finish() {
  finished_ = true;
  scan();
  pump();
}

void LogShipper::remember() {
  scan();
  remembers_ = true;
  for (auto& [id, stream] : streams_) stream.remembered = total(stream);
}

bool LogShipper::caught_up() const {
  return remembers_ && std::ranges::all_of(streams_, [](const auto& entry) { return entry.second.acked >= entry.second.remembered; });
}

bool LogShipper::shipped() const {
  if (!finished_) return false;
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    const Stream& stream = entry.second;
    return stream.end_acked && stream.acked >= total(stream);
  });
}

}  // namespace helio::agent
