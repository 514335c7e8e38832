#pragma once
// One stream's files and what is known about them. The size of the .log file is the truth about how much was appended: after a kill of the
// daemon nothing is cut, and an unfinished append is a prefix of what the sender sends again.

#include "base/clock.h"
#include "base/error.h"
#include "store/log_store.h"
#include "store/logs/files.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace helio::store::logs {

/// "<dir>/<attempt>/<node>/<stream>" and the files beside it.
struct StreamPaths {
  std::string root;
  std::string attempt;  ///< folder
  std::string node;     ///< folder
  std::string base;     ///< without extension

  StreamPaths(const std::string& dir, const StreamKey& key)
      : root(dir), attempt(dir + "/" + key.attempt.value), node(attempt + "/" + key.node.value), base(node + "/" + key.stream) {}
  [[nodiscard]] std::string log() const { return base + ".log"; }
  [[nodiscard]] std::string idx() const { return base + ".idx"; }
  [[nodiscard]] std::string meta() const { return base + ".meta"; }
  [[nodiscard]] std::string zst() const { return base + ".zst"; }
};

/// Any thread.
class Stream {
 public:
  /// Makes the stream's files. It must not exist.
  static Result<std::shared_ptr<Stream>> create(const std::string& dir, const StreamKey& key, std::string_view kind);
  /// Error: not_found when there is no such stream.
  static Result<std::shared_ptr<Stream>> load(const std::string& dir, const StreamKey& key);

  Result<std::int64_t> append(std::int64_t offset, std::string_view bytes, Timestamp now);
  Result<void> mark_ended();
  /// Makes the bytes durable. True: names in its folders are new, and sync_folders() must follow before anybody relies on them.
  Result<bool> sync();
  void names_not_durable();
  /// Compresses into the .zst file, from which on the stream is read. The .log file stays for remove_plain(), once the folder is synced.
  Result<void> seal();
  Result<void> remove_plain();
  /// Of bytes that are not sealed; nullopt when they are: then read the .zst file.
  Result<std::optional<std::string>> read(std::int64_t offset, std::size_t max);
  /// Offset of the first index entry at or after `time`; size when all is older. Not cut to a line.
  Result<std::int64_t> indexed_offset(Timestamp time);

  [[nodiscard]] StreamMeta meta();
  [[nodiscard]] bool sealed();
  [[nodiscard]] const StreamPaths& paths() const { return paths_; }
  /// The attempt is being removed: nothing is written any more.
  void forget();

  /// For keeping the number of open descriptors bounded.
  [[nodiscard]] std::uint64_t last_used() const { return last_used_.load(std::memory_order_relaxed); }
  void touch(std::uint64_t tick) { last_used_.store(tick, std::memory_order_relaxed); }
  [[nodiscard]] bool has_open_files() const { return open_.load(std::memory_order_relaxed); }
  /// Closes them unless the stream is busy.
  void close_files();

 private:
  struct Entry {
    std::int64_t offset = 0;
    Timestamp at;
  };

  Stream(const std::string& dir, const StreamKey& key) : paths_(dir, key) { meta_.key = key; }
  Result<void> open_files();
  Result<void> check_writable() const;
  Result<void> load_index();
  Result<Entry> entry(const File& index, std::int64_t number) const;
  void index_append(std::int64_t offset, Timestamp now);
  Result<void> write_meta();

  const StreamPaths paths_;
  std::atomic<std::uint64_t> last_used_{0};
  std::atomic<bool> open_{false};

  std::mutex mutex_;  ///< of all below; not held during fdatasync and compression
  StreamMeta meta_;
  std::shared_ptr<File> log_;
  std::shared_ptr<File> index_;
  std::int64_t entries_ = 0;  ///< valid ones in the index
  Entry last_entry_;
  bool names_dirty_ = false;  ///< the .meta file or a folder entry is not yet durable
  bool sealing_ = false;
  bool forgotten_ = false;
};

}  // namespace helio::store::logs
