#include "store/logs/file_log_store.h"

#include "base/log.h"
#include "store/listeners.h"
#include "store/logs/files.h"
#include "store/logs/sealed.h"
#include "store/logs/stream.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace helio::store {
namespace {

using logs::SealedReader;
using logs::Stream;
using StreamPtr = std::shared_ptr<Stream>;

constexpr std::size_t kMaxOpenStreams = 60;  // two descriptors each
constexpr std::size_t kMaxSealedReaders = 4;
constexpr std::int64_t kMaxLineSearch = 1 << 20;
constexpr std::string_view kMetaSuffix = ".meta";

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 200 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}
Result<void> check_attempt(const AttemptId& attempt) {
  if (!is_name(attempt.value) || attempt.value.front() == '.')
    return fail(ErrorCode::invalid_argument, "'{}' is no attempt id", attempt.value);
  return {};
}
Result<void> check_key(const StreamKey& key) {
  HELIO_CHECK_OK(check_attempt(key.attempt));
  if (!is_name(key.node.value) || key.node.value.front() == '.')
    return fail(ErrorCode::invalid_argument, "'{}' is no node id", key.node.value);
  if (!is_name(key.stream)) return fail(ErrorCode::invalid_argument, "'{}' is no stream name: [A-Za-z0-9._-]{{1,200}}", key.stream);
  return {};
}

/// Who waits for what attempt. Outlives the store while a watch does.
struct Watchers {
  std::mutex mutex;
  std::map<std::string, Listeners<>> attempts;
  std::atomic<int> count{0};
};

class FileWatch final : public LogStore::Watch {
 public:
  FileWatch(std::shared_ptr<Watchers> watchers, std::string attempt, std::function<void()> wake)
      : watchers_(std::move(watchers)), attempt_(std::move(attempt)) {
    const std::lock_guard lock(watchers_->mutex);
    handle_ = watchers_->attempts[attempt_].add(std::move(wake));
    ++watchers_->count;
  }
  ~FileWatch() override {
    handle_.reset();
    const std::lock_guard lock(watchers_->mutex);
    --watchers_->count;
    const auto found = watchers_->attempts.find(attempt_);
    if (found != watchers_->attempts.end() && found->second.empty()) watchers_->attempts.erase(found);
  }
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  std::shared_ptr<Watchers> watchers_;
  std::string attempt_;
  std::unique_ptr<Listeners<>::Handle> handle_;
};

class FileLogStore final : public LogStore {
 public:
  explicit FileLogStore(std::string dir) : dir_(std::move(dir)) {}

  Result<std::int64_t> open(const StreamKey& key, std::string_view kind) override;
  Result<std::int64_t> append(const StreamKey& key, std::int64_t offset, std::string_view bytes, Timestamp now) override;
  Result<void> mark_ended(const StreamKey& key) override;
  Result<void> sync(const std::vector<StreamKey>& keys) override;
  Result<StreamMeta> stat(const StreamKey& key) override;
  Result<std::vector<StreamMeta>> list(const AttemptId& attempt) override;
  Result<std::string> read(const StreamKey& key, std::int64_t offset, std::size_t max) override;
  Result<std::int64_t> offset_at(const StreamKey& key, Timestamp time) override;
  std::unique_ptr<Watch> watch(const AttemptId& attempt, std::function<void()> wake) override {
    return std::make_unique<FileWatch>(watchers_, attempt.value, std::move(wake));
  }
  Result<void> seal(const AttemptId& attempt) override;
  Result<void> remove(const AttemptId& attempt) override;
  Result<std::int64_t> total_bytes() override;

 private:
  Result<StreamPtr> find(const StreamKey& key);
  Result<std::vector<StreamKey>> keys_of(const AttemptId& attempt) const;
  Result<std::shared_ptr<SealedReader>> sealed_reader(const std::string& path);
  static Result<void> sync_folders(const std::vector<StreamPtr>& streams);
  void bound_open_files();
  /// Takes the attempt's streams out of memory; their files say all.
  std::vector<StreamPtr> drop(const AttemptId& attempt);
  void wake(const AttemptId& attempt) const;
  std::int64_t bytes_in(const std::string& attempt) const;

  const std::string dir_;
  std::mutex mutex_;                             ///< of the two maps; taken before a stream's own lock only to try it
  std::map<StreamKey, StreamPtr> streams_;       ///< those not sealed that were used
  std::map<std::string, std::int64_t> at_rest_;  ///< bytes of attempts without such streams, as counted by total_bytes()
  std::atomic<std::uint64_t> tick_{0};

  std::mutex seal_mutex_;  ///< one compression at a time is enough

  std::mutex readers_mutex_;
  std::list<std::pair<std::string, std::shared_ptr<SealedReader>>> readers_;  ///< latest first

  std::shared_ptr<Watchers> watchers_ = std::make_shared<Watchers>();
};

void FileLogStore::wake(const AttemptId& attempt) const {
  if (watchers_->count.load(std::memory_order_acquire) == 0) return;
  std::optional<Listeners<>> listeners;
  {
    const std::lock_guard lock(watchers_->mutex);
    const auto found = watchers_->attempts.find(attempt.value);
    if (found != watchers_->attempts.end()) listeners = found->second;
  }
  if (listeners) listeners->call();
}

Result<StreamPtr> FileLogStore::find(const StreamKey& key) {
  const std::uint64_t tick = tick_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (const auto found = streams_.find(key); found != streams_.end()) {
    found->second->touch(tick);
    return found->second;
  }
  HELIO_CHECK_OK(check_key(key));
  HELIO_TRY(stream, Stream::load(dir_, key));
  stream->touch(tick);
  if (!stream->sealed()) {
    streams_.emplace(key, stream);
    at_rest_.erase(key.attempt.value);
  }
  return stream;
}

void FileLogStore::bound_open_files() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::uint64_t, Stream*>> open;
  for (const auto& [key, stream] : streams_) {
    if (stream->has_open_files()) open.emplace_back(stream->last_used(), stream.get());
  }
  if (open.size() <= kMaxOpenStreams) return;
  // A quarter at once, so that more streams than fit do not bring this scan with each call.
  const auto keep = open.begin() + static_cast<std::ptrdiff_t>(open.size() - kMaxOpenStreams * 3 / 4);
  std::ranges::nth_element(open, keep);
  for (auto victim = open.begin(); victim != keep; ++victim) victim->second->close_files();
}

Result<std::int64_t> FileLogStore::open(const StreamKey& key, std::string_view kind) {
  auto found = find(key);
  if (found) return (*found)->meta().size;
  if (found.error().code() != ErrorCode::not_found) return fail(std::move(found).error());
  {
    const std::lock_guard lock(mutex_);
    // Another thread may have been here since.
    if (const auto there = streams_.find(key); there != streams_.end()) return there->second->meta().size;
    HELIO_TRY(stream, Stream::create(dir_, key, kind));
    stream->touch(tick_.fetch_add(1, std::memory_order_relaxed));
    streams_.emplace(key, std::move(stream));
    at_rest_.erase(key.attempt.value);
  }
  bound_open_files();
  wake(key.attempt);
  return 0;
}

Result<std::int64_t> FileLogStore::append(const StreamKey& key, std::int64_t offset, std::string_view bytes, Timestamp now) {
  HELIO_TRY(stream, find(key));
  const bool was_open = stream->has_open_files();
  HELIO_TRY(size, stream->append(offset, bytes, now));
  if (!was_open) bound_open_files();
  wake(key.attempt);
  return size;
}

Result<void> FileLogStore::mark_ended(const StreamKey& key) {
  HELIO_TRY(stream, find(key));
  HELIO_CHECK_OK(stream->mark_ended());
  wake(key.attempt);
  return {};
}

Result<void> FileLogStore::sync(const std::vector<StreamKey>& keys) {
  std::vector<StreamPtr> fresh;
  Result<void> result;
  for (const StreamKey& key : keys) {
    auto stream = find(key);
    if (!stream) {
      result = fail(std::move(stream).error());
      break;
    }
    const bool was_open = (*stream)->has_open_files();
    auto synced = (*stream)->sync();
    if (!was_open) bound_open_files();
    if (!synced) {
      result = fail(std::move(synced).error());
      break;
    }
    if (*synced) fresh.push_back(std::move(*stream));
  }
  // Once for all: new streams of a node share their folders.
  if (auto folders = sync_folders(fresh); !folders) {
    for (const StreamPtr& stream : fresh) stream->names_not_durable();
    if (result) result = std::move(folders);
  }
  return result;
}

Result<void> FileLogStore::sync_folders(const std::vector<StreamPtr>& streams) {
  std::set<std::string> folders;
  for (const StreamPtr& stream : streams) {
    const logs::StreamPaths& paths = stream->paths();
    folders.insert({paths.node, paths.attempt, paths.root});
  }
  for (const std::string& folder : folders) HELIO_CHECK_OK(logs::sync_path(folder));
  return {};
}

Result<StreamMeta> FileLogStore::stat(const StreamKey& key) {
  HELIO_TRY(stream, find(key));
  return stream->meta();
}

Result<std::vector<StreamKey>> FileLogStore::keys_of(const AttemptId& attempt) const {
  HELIO_CHECK_OK(check_attempt(attempt));
  std::vector<StreamKey> keys;
  const std::string folder = dir_ + "/" + attempt.value;
  HELIO_TRY(nodes, logs::names_in(folder));
  for (const std::string& node : nodes) {
    HELIO_TRY(names, logs::names_in(folder + "/" + node));
    for (const std::string& name : names) {
      if (name.size() > kMetaSuffix.size() && name.ends_with(kMetaSuffix)) {
        keys.push_back({attempt, NodeId(node), name.substr(0, name.size() - kMetaSuffix.size())});
      }
    }
  }
  return keys;
}

Result<std::vector<StreamMeta>> FileLogStore::list(const AttemptId& attempt) {
  HELIO_TRY(keys, keys_of(attempt));
  std::vector<StreamMeta> out;
  out.reserve(keys.size());
  for (const StreamKey& key : keys) {
    auto stream = find(key);
    if (stream) {
      out.push_back((*stream)->meta());
    } else if (stream.error().code() != ErrorCode::not_found) {
      // One that is damaged must not hide the others.
      log::warn("{}", stream.error().text());
    }
  }
  return out;
}

Result<std::shared_ptr<SealedReader>> FileLogStore::sealed_reader(const std::string& path) {
  {
    const std::lock_guard lock(readers_mutex_);
    const auto found = std::ranges::find(readers_, path, &std::pair<std::string, std::shared_ptr<SealedReader>>::first);
    if (found != readers_.end()) {
      readers_.splice(readers_.begin(), readers_, found);
      return found->second;
    }
  }
  HELIO_TRY(reader, SealedReader::open(path));
  const std::lock_guard lock(readers_mutex_);
  readers_.emplace_front(path, reader);
  if (readers_.size() > kMaxSealedReaders) readers_.pop_back();
  return std::move(reader);
}

Result<std::string> FileLogStore::read(const StreamKey& key, std::int64_t offset, std::size_t max) {
  HELIO_CHECK_OK(check_key(key));
  if (offset < 0) return fail(ErrorCode::invalid_argument, "negative offset {}", offset);
  const std::string sealed_path = logs::StreamPaths(dir_, key).zst();
  {
    // A page of a sealed stream that is being read: no look at its description again.
    std::shared_ptr<SealedReader> reader;
    {
      const std::lock_guard lock(readers_mutex_);
      if (!readers_.empty() && readers_.front().first == sealed_path) reader = readers_.front().second;
    }
    if (reader) return reader->read(offset, max);
  }
  HELIO_TRY(stream, find(key));
  const bool was_open = stream->has_open_files();
  HELIO_TRY(bytes, stream->read(offset, max));
  if (bytes) {
    if (!was_open) bound_open_files();
    return std::move(*bytes);
  }
  HELIO_TRY(reader, sealed_reader(sealed_path));
  return reader->read(offset, max);
}

Result<std::int64_t> FileLogStore::offset_at(const StreamKey& key, Timestamp time) {
  HELIO_TRY(stream, find(key));
  HELIO_TRY(offset, stream->indexed_offset(time));
  constexpr std::int64_t kPiece = 4096;
  std::int64_t from = offset;
  while (from > 0 && offset - from < kMaxLineSearch) {
    const std::int64_t start = std::max<std::int64_t>(0, from - kPiece);
    HELIO_TRY(bytes, read(key, start, static_cast<std::size_t>(from - start)));
    const std::size_t newline = bytes.rfind('\n');
    if (newline != std::string::npos) return start + static_cast<std::int64_t>(newline) + 1;
    from = start;
  }
  // The first line, or one so long that its start is of no use.
  return from == 0 ? 0 : offset;
}

std::vector<StreamPtr> FileLogStore::drop(const AttemptId& attempt) {
  std::vector<StreamPtr> dropped;
  const std::lock_guard lock(mutex_);
  for (auto it = streams_.lower_bound({attempt, {}, {}}); it != streams_.end() && it->first.attempt == attempt;) {
    dropped.push_back(std::move(it->second));
    it = streams_.erase(it);
  }
  at_rest_.erase(attempt.value);
  return dropped;
}

Result<void> FileLogStore::seal(const AttemptId& attempt) {
  const std::lock_guard lock(seal_mutex_);
  HELIO_TRY(keys, keys_of(attempt));
  std::vector<StreamPtr> sealed;
  Result<void> result;
  for (const StreamKey& key : keys) {
    auto stream = find(key);
    auto done = stream ? Result<void>() : fail(std::move(stream).error());
    if (stream && (*stream)->sealed()) continue;
    if (stream) done = (*stream)->seal();
    if (done) {
      sealed.push_back(std::move(*stream));
    } else if (result) {
      // The others can be sealed all the same; this one is tried again with the next call.
      result = std::move(done);
    }
  }
  // The new names are durable before the old files go. A crash in between leaves both, and load() removes the old one.
  HELIO_CHECK_OK(sync_folders(sealed));
  for (const StreamPtr& stream : sealed) HELIO_CHECK_OK(stream->remove_plain());
  if (result) drop(attempt);
  wake(attempt);
  return result;
}

Result<void> FileLogStore::remove(const AttemptId& attempt) {
  HELIO_CHECK_OK(check_attempt(attempt));
  // Sealing renames files of this folder.
  const std::lock_guard sealing(seal_mutex_);
  for (const StreamPtr& stream : drop(attempt)) stream->forget();
  const std::string folder = dir_ + "/" + attempt.value;
  {
    const std::lock_guard lock(readers_mutex_);
    readers_.remove_if([&](const auto& reader) { return reader.first.starts_with(folder + "/"); });
  }
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  wake(attempt);
  if (error) return fail(system_error(error.value(), "remove " + folder));
  return {};
}

std::int64_t FileLogStore::bytes_in(const std::string& attempt) const {
  std::int64_t total = 0;
  const std::string folder = dir_ + "/" + attempt;
  const auto nodes = logs::names_in(folder);
  if (!nodes) return 0;
  for (const std::string& node : *nodes) {
    const auto names = logs::names_in(folder + "/" + node);
    if (!names) continue;
    for (const std::string& name : *names) total += logs::size_of(folder + "/" + node + "/" + name);
  }
  return total;
}

Result<std::int64_t> FileLogStore::total_bytes() {
  HELIO_TRY(attempts, logs::names_in(dir_));
  std::int64_t total = 0;
  for (const std::string& attempt : attempts) {
    {
      const std::lock_guard lock(mutex_);
      const auto known = at_rest_.find(attempt);
      if (known != at_rest_.end()) {
        total += known->second;
        continue;
      }
    }
    const std::int64_t bytes = bytes_in(attempt);
    total += bytes;
    const std::lock_guard lock(mutex_);
    const auto stream = streams_.lower_bound({AttemptId(attempt), {}, {}});
    if (stream == streams_.end() || stream->first.attempt.value != attempt) at_rest_[attempt] = bytes;
  }
  return total;
}

}  // namespace

Result<std::unique_ptr<LogStore>> open_file_logs(std::string dir) {
  HELIO_CHECK_OK(logs::make_folder(dir));
  return std::make_unique<FileLogStore>(std::move(dir));
}

}  // namespace helio::store
