#pragma once
// Internal to link/: group sync of log streams. Many streams and connections share one fdatasync round.

#include "base/clock.h"
#include "base/executor.h"
#include "store/log_store.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace helio::link {

/// What is now durable of one stream of one connection.
struct Ack {
  std::int32_t id = 0;
  std::int64_t offset = 0;
  bool ended = false;
};

/// Who gets acknowledgements.
class AckSink {
 public:
  virtual ~AckSink() = default;
  virtual void acknowledge(const std::vector<Ack>& acks) = 0;
};

class Syncer {
 public:
  struct Options {
    Duration every;
    std::size_t bytes;
    Duration retry_after;
  };
  /// `executor` runs the syncs; it blocks in fdatasync. Both outlive this.
  Syncer(store::LogStore& logs, Executor& executor, Options options) : logs_(logs), executor_(executor), options_(options) {}

  /// `ack.offset` bytes of the stream have been appended, `fresh` of them just now. Any thread. The sink hears of it once they are durable.
  void appended(const std::weak_ptr<AckSink>& sink, const store::StreamKey& key, Ack ack, std::size_t fresh);

 private:
  struct Entry {
    std::weak_ptr<AckSink> sink;
    store::StreamKey key;
    Ack ack;
  };
  using Pending = std::map<std::pair<const void*, std::int32_t>, Entry>;

  void arm(Duration delay);
  void run();
  /// Leaves in `batch` what could be synced; returns what shall be tried again.
  Pending sync_singly(Pending& batch);
  void put_back(Pending batch);

  store::LogStore& logs_;
  Executor& executor_;
  Options options_;
  std::mutex mutex_;
  Pending pending_;
  std::size_t bytes_ = 0;
  bool armed_ = false;   ///< a timer is running
  bool urgent_ = false;  ///< a task is posted
};

}  // namespace helio::link
