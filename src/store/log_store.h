#pragma once
// Logs as files: one growing file per (attempt, node, stream), an index entry per MiB or second for reads by time, sealed (zstd frames)
// when the attempt has ended. Rows never hold log bytes. Any thread.

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::store {

struct StreamKey {
  AttemptId attempt;
  NodeId node;
  std::string stream;  ///< [A-Za-z0-9._-]{1,200}
  auto operator<=>(const StreamKey&) const = default;
};

struct StreamMeta {
  StreamKey key;
  std::string kind;          ///< driver, worker, ray, agent
  std::int64_t size = 0;     ///< bytes appended
  std::int64_t durable = 0;  ///< bytes synced
  Timestamp first_at;
  Timestamp last_at;
  bool ended = false;       ///< no more will come
  bool sealed = false;      ///< compressed
  std::int64_t stored = 0;  ///< bytes on disk
};

class LogStore {
 public:
  virtual ~LogStore() = default;

  /// Opens or re-opens a stream; returns the size so far, where the sender shall go on.
  virtual Result<std::int64_t> open(const StreamKey& key, std::string_view kind) = 0;
  /// Appends what lies beyond the stored size; bytes before it are dropped (a resend), a gap is refused (precondition_failed).
  /// Returns the new size. Not durable before sync(). Disk full: storage_full, nothing half written.
  virtual Result<std::int64_t> append(const StreamKey& key, std::int64_t offset, std::string_view bytes, Timestamp now) = 0;
  virtual Result<void> mark_ended(const StreamKey& key) = 0;
  /// Makes all appended bytes of these streams durable (one fdatasync each that has new bytes).
  virtual Result<void> sync(const std::vector<StreamKey>& keys) = 0;

  virtual Result<StreamMeta> stat(const StreamKey& key) = 0;
  virtual Result<std::vector<StreamMeta>> list(const AttemptId& attempt) = 0;
  /// Up to `max` bytes from `offset`; empty at the end. Works the same on sealed streams.
  virtual Result<std::string> read(const StreamKey& key, std::int64_t offset, std::size_t max) = 0;
  /// Offset of the first index entry at or after `time`, cut back to the start of a line; size when all is older.
  virtual Result<std::int64_t> offset_at(const StreamKey& key, Timestamp time) = 0;

  class Watch {
   public:
    virtual ~Watch() = default;
  };
  /// Calls `wake` (any thread, must only post) when a stream of the attempt grows, ends, appears or is sealed.
  virtual std::unique_ptr<Watch> watch(const AttemptId& attempt, std::function<void()> wake) = 0;

  /// Compresses every stream of an ended attempt. Idempotent; readers are not disturbed.
  virtual Result<void> seal(const AttemptId& attempt) = 0;
  virtual Result<void> remove(const AttemptId& attempt) = 0;
  /// Bytes on disk of all attempts.
  virtual Result<std::int64_t> total_bytes() = 0;
};

}  // namespace helio::store
