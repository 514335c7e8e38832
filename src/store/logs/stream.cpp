#include "store/logs/stream.h"

#include "base/json/json.h"
#include "base/log.h"
#include "store/logs/sealed.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace helio::store::logs {
namespace {

constexpr std::int64_t kEntrySize = 16;
constexpr std::int64_t kEntryBytes = 1 << 20;
constexpr Duration kEntryTime = 1s;

std::string encode_entry(std::int64_t offset, std::int64_t at_us) {
  std::string out(kEntrySize, '\0');
  std::memcpy(out.data(), &offset, 8);
  std::memcpy(out.data() + 8, &at_us, 8);
  return out;
}

std::int64_t number_of(const json::Object& object, std::string_view name) {
  const json::Value* found = object.if_contains(name);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

}  // namespace

Result<std::shared_ptr<Stream>> Stream::create(const std::string& dir, const StreamKey& key, std::string_view kind) {
  std::shared_ptr<Stream> stream(new Stream(dir, key));
  stream->meta_.kind = kind;
  HELIO_CHECK_OK(make_folder(stream->paths_.attempt));
  HELIO_CHECK_OK(make_folder(stream->paths_.node));
  const std::lock_guard lock(stream->mutex_);
  HELIO_CHECK_OK(stream->write_meta());
  HELIO_CHECK_OK(stream->open_files());
  return stream;
}

Result<std::shared_ptr<Stream>> Stream::load(const std::string& dir, const StreamKey& key) {
  std::shared_ptr<Stream> stream(new Stream(dir, key));
  const StreamPaths& paths = stream->paths_;
  StreamMeta& meta = stream->meta_;
  auto text = read_file(paths.meta());
  if (!text) {
    if (text.error().code() != ErrorCode::not_found) return fail(std::move(text).error());
    return fail(ErrorCode::not_found, "no log '{}' of node {}", key.stream, key.node.value);
  }
  const std::lock_guard lock(stream->mutex_);
  if (const auto value = json::parse(*text); value && value->is_object()) {
    const json::Object& object = value->get_object();
    if (const json::Value* kind = object.if_contains("kind"); kind != nullptr && kind->is_string()) meta.kind = kind->get_string();
    if (const json::Value* ended = object.if_contains("ended"); ended != nullptr && ended->is_bool()) meta.ended = ended->get_bool();
    meta.first_at = {number_of(object, "first_at")};
    meta.last_at = {number_of(object, "last_at")};
  } else {
    // Written and renamed, but lost with the machine's power: the bytes themselves are in the other files.
    log::warn("log {}: description lost", paths.base);
  }
  meta.sealed = exists(paths.zst());
  if (meta.sealed) {
    HELIO_TRY(reader, SealedReader::open(paths.zst()));
    meta.size = meta.durable = reader->size();
    meta.ended = true;
    // A crash between the rename of the sealed file and this removal leaves both.
    HELIO_CHECK_OK(unlink_path(paths.log()));
  } else {
    meta.size = size_of(paths.log());
    stream->names_dirty_ = true;
  }
  HELIO_CHECK_OK(stream->load_index());
  return stream;
}

Result<void> Stream::load_index() {
  auto index = File::open(paths_.idx(), O_RDONLY);
  if (!index) {
    // No byte was appended before the kill, or the index was lost: reads by offset need none.
    if (index.error().code() == ErrorCode::not_found) return {};
    return fail(std::move(index).error());
  }
  HELIO_TRY(size, (*index)->size());
  entries_ = size / kEntrySize;
  // Entries that speak of bytes which did not make it are overwritten by the next.
  while (entries_ > 0) {
    HELIO_TRY(last, entry(**index, entries_ - 1));
    if (last.offset < meta_.size) {
      last_entry_ = last;
      break;
    }
    --entries_;
  }
  if (entries_ == 0) return {};
  HELIO_TRY(first, entry(**index, 0));
  meta_.first_at = first.at;
  meta_.last_at = std::max(meta_.last_at, last_entry_.at);
  return {};
}

Result<Stream::Entry> Stream::entry(const File& index, std::int64_t number) const {
  HELIO_TRY(bytes, index.read(number * kEntrySize, kEntrySize));
  if (bytes.size() != kEntrySize) return fail(ErrorCode::internal, "{}: index entry {} is missing", paths_.base, number);
  Entry out;
  std::memcpy(&out.offset, bytes.data(), 8);
  std::memcpy(&out.at.us, bytes.data() + 8, 8);
  return out;
}

Result<void> Stream::open_files() {
  if (!log_) {
    HELIO_TRY(log, File::open(paths_.log(), O_RDWR | O_CREAT));
    log_ = std::move(log);
    open_.store(true, std::memory_order_relaxed);
  }
  if (!index_) {
    HELIO_TRY(index, File::open(paths_.idx(), O_RDWR | O_CREAT));
    index_ = std::move(index);
  }
  return {};
}

void Stream::close_files() {
  // Unsynced bytes belong to the file, not to the descriptor: a later fdatasync through another one reaches them.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  log_.reset();
  index_.reset();
  open_.store(false, std::memory_order_relaxed);
}

void Stream::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = true;
  log_.reset();
  index_.reset();
  open_.store(false, std::memory_order_relaxed);
}

Result<void> Stream::check_writable() const {
  if (forgotten_) return fail(ErrorCode::not_found, "log {} was removed", paths_.base);
  if (meta_.sealed || sealing_) return fail(ErrorCode::precondition_failed, "log {} is sealed", paths_.base);
  return {};
}

Result<std::int64_t> Stream::append(std::int64_t offset, std::string_view bytes, Timestamp now) {
  const std::lock_guard lock(mutex_);
  if (offset < 0) return fail(ErrorCode::invalid_argument, "negative offset {}", offset);
  if (offset > meta_.size) {
    return fail(
        Error(ErrorCode::precondition_failed, fmt::format("log {}: gap, {} bytes are held and {} is next", paths_.base, meta_.size, offset))
            .with("size", std::to_string(meta_.size)));
  }
  const auto held = static_cast<std::size_t>(meta_.size - offset);
  if (bytes.size() <= held) return meta_.size;
  HELIO_CHECK_OK(check_writable());
  HELIO_CHECK_OK(open_files());
  bytes.remove_prefix(held);
  if (auto written = log_->write(meta_.size, bytes); !written) {
    // What is left of it when this fails too is overwritten by the next append.
    if (const auto cut = log_->truncate(meta_.size); !cut) log::warn("log {}: {}", paths_.base, cut.error().text());
    return fail(std::move(written).error().during("log " + paths_.base));
  }
  index_append(meta_.size, now);
  meta_.size += static_cast<std::int64_t>(bytes.size());
  return meta_.size;
}

void Stream::index_append(std::int64_t offset, Timestamp now) {
  // Times in the index never go back, whatever the clock does, so that it can be searched.
  const Timestamp at = std::max(now, meta_.last_at);
  meta_.last_at = at;
  if (entries_ == 0) {
    meta_.first_at = at;
  } else if (at - last_entry_.at < kEntryTime && offset - last_entry_.offset < kEntryBytes) {
    return;
  }
  // An entry that cannot be written costs precision of reads by time, not a byte of the log.
  if (const auto written = index_->write(entries_ * kEntrySize, encode_entry(offset, at.us)); !written) return;
  last_entry_ = {offset, at};
  ++entries_;
}

Result<void> Stream::mark_ended() {
  const std::lock_guard lock(mutex_);
  if (meta_.ended) return {};
  HELIO_CHECK_OK(check_writable());
  meta_.ended = true;
  auto written = write_meta();
  if (!written) meta_.ended = false;
  return written;
}

Result<void> Stream::write_meta() {
  const json::Object object{
      {"kind", meta_.kind}, {"ended", meta_.ended}, {"size", meta_.size}, {"first_at", meta_.first_at.us}, {"last_at", meta_.last_at.us}};
  HELIO_CHECK_OK(replace_file(paths_.meta(), json::dump(object)));
  names_dirty_ = true;
  return {};
}

Result<bool> Stream::sync() {
  std::shared_ptr<File> log;
  std::int64_t size = 0;
  bool names = false;
  {
    const std::lock_guard lock(mutex_);
    if (meta_.sealed || forgotten_) return false;
    size = meta_.size;
    names = std::exchange(names_dirty_, false);
    if (size > meta_.durable) {
      HELIO_CHECK_OK(open_files());
      log = log_;
    }
  }
  auto done = log ? log->sync() : Result<void>();
  if (done && names) done = sync_path(paths_.meta());
  const std::lock_guard lock(mutex_);
  if (!done) {
    names_dirty_ = names_dirty_ || names;
    return fail(std::move(done).error().during("log " + paths_.base));
  }
  meta_.durable = std::max(meta_.durable, size);
  return names;
}

void Stream::names_not_durable() {
  const std::lock_guard lock(mutex_);
  names_dirty_ = true;
}

Result<void> Stream::seal() {
  std::shared_ptr<File> log;
  std::int64_t size = 0;
  {
    const std::lock_guard lock(mutex_);
    if (meta_.sealed || forgotten_ || sealing_) return {};
    HELIO_CHECK_OK(open_files());
    log = log_;
    size = meta_.size;
    sealing_ = true;
  }
  const std::string fresh = paths_.zst() + ".tmp";
  auto stored = write_sealed(*log, size, fresh);
  const std::lock_guard lock(mutex_);
  sealing_ = false;
  auto done = stored ? Result<void>() : fail(std::move(stored).error());
  if (done && forgotten_) done = fail(ErrorCode::not_found, "the log was removed");
  if (done) done = rename_path(fresh, paths_.zst());
  if (!done) {
    static_cast<void>(unlink_path(fresh));
    return fail(std::move(done).error().during("seal " + paths_.base));
  }
  // The .meta file needs no change: that a sealed file is there says that the stream has ended, and its table says the size.
  meta_.sealed = true;
  meta_.ended = true;
  meta_.durable = meta_.size;
  log_.reset();
  index_.reset();
  open_.store(false, std::memory_order_relaxed);
  return {};
}

Result<void> Stream::remove_plain() {
  const std::lock_guard lock(mutex_);
  if (!meta_.sealed) return {};
  return unlink_path(paths_.log());
}

Result<std::optional<std::string>> Stream::read(std::int64_t offset, std::size_t max) {
  std::shared_ptr<File> log;
  std::int64_t left = 0;
  {
    const std::lock_guard lock(mutex_);
    if (meta_.sealed) return std::optional<std::string>{};
    if (forgotten_) return fail(ErrorCode::not_found, "log {} was removed", paths_.base);
    left = meta_.size - offset;
    if (left <= 0) return std::optional<std::string>(std::in_place);
    HELIO_CHECK_OK(open_files());
    log = log_;
  }
  HELIO_TRY(bytes, log->read(offset, std::min(max, static_cast<std::size_t>(left))));
  return std::optional<std::string>(std::move(bytes));
}

Result<std::int64_t> Stream::indexed_offset(Timestamp time) {
  const std::lock_guard lock(mutex_);
  if (meta_.last_at < time) return meta_.size;
  // The index was lost: rather too much than nothing.
  if (entries_ == 0) return 0;
  // What came after the last entry is younger than it, though none of it has its own.
  if (last_entry_.at < time) return last_entry_.offset;
  HELIO_TRY(index, File::open(paths_.idx(), O_RDONLY));
  std::int64_t low = 0;
  std::int64_t high = entries_ - 1;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    HELIO_TRY(there, entry(*index, middle));
    if (there.at < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  HELIO_TRY(found, entry(*index, low));
  return found.offset;
}

StreamMeta Stream::meta() {
  const std::lock_guard lock(mutex_);
  StreamMeta out = meta_;
  out.stored = (meta_.sealed ? size_of(paths_.zst()) : meta_.size) + entries_ * kEntrySize;
  return out;
}

bool Stream::sealed() {
  const std::lock_guard lock(mutex_);
  return meta_.sealed;
}

}  // namespace helio::store::logs
