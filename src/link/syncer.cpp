#include "link/syncer.h"

#include "base/log.h"

#include <algorithm>

namespace helio::link {
namespace {
/// An ended stream holds up its node's end, so it does not wait for the usual round; its siblings still share one.
constexpr Duration kEndedDelay = 5ms;
}  // namespace

void Syncer::appended(const std::weak_ptr<AckSink>& sink, const store::StreamKey& key, Ack ack, std::size_t fresh) {
  const auto locked = sink.lock();
  if (!locked) return;
  const std::scoped_lock lock(mutex_);
  Entry& entry = pending_[{locked.get(), ack.id}];
  // A raw pointer may have been used before by a connection that is gone: then this is another one's entry.
  if (entry.sink.owner_before(sink) || sink.owner_before(entry.sink)) entry = Entry{sink, key, {}};
  entry.key = key;
  entry.ack.id = ack.id;
  entry.ack.offset = std::max(entry.ack.offset, ack.offset);
  entry.ack.ended = entry.ack.ended || ack.ended;
  bytes_ += fresh;
  if (bytes_ >= options_.bytes) {
    if (urgent_) return;
    urgent_ = true;
    executor_.post([this] { run(); });
  } else if (ack.ended && !urgent_) {
    urgent_ = true;
    executor_.after(kEndedDelay, [this] { run(); });
  } else if (!armed_) {
    arm(options_.every);
  }
}

void Syncer::arm(Duration delay) {
  armed_ = true;
  executor_.after(delay, [this] {
    {
      const std::scoped_lock lock(mutex_);
      armed_ = false;
    }
    run();
  });
}

void Syncer::run() {
  Pending batch;
  {
    const std::scoped_lock lock(mutex_);
    urgent_ = false;
    bytes_ = 0;
    batch.swap(pending_);
  }
  if (batch.empty()) return;
  std::vector<store::StreamKey> keys;
  keys.reserve(batch.size());
  for (const auto& [id, entry] : batch) keys.push_back(entry.key);
  std::ranges::sort(keys);
  const auto doubled = std::ranges::unique(keys);
  keys.erase(doubled.begin(), doubled.end());
  if (auto synced = logs_.sync(keys); !synced) {
    log::error("log streams cannot be made durable: {}", synced.error().text());
    put_back(sync_singly(batch));
  }
  // The map is ordered by connection, so each gets one frame.
  for (auto it = batch.begin(); it != batch.end();) {
    std::vector<Ack> acks;
    const auto sink = it->second.sink.lock();
    const void* const owner = it->first.first;
    for (; it != batch.end() && it->first.first == owner; ++it) acks.push_back(it->second.ack);
    if (sink) sink->acknowledge(acks);
  }
}

Syncer::Pending Syncer::sync_singly(Pending& batch) {
  Pending failed;
  for (auto it = batch.begin(); it != batch.end();) {
    auto synced = logs_.sync({it->second.key});
    if (synced) {
      ++it;
      continue;
    }
    // A stream that was removed meanwhile has nobody who waits for it.
    if (synced.error().code() != ErrorCode::not_found) failed.insert(*it);
    it = batch.erase(it);
  }
  return failed;
}

void Syncer::put_back(Pending batch) {
  const std::scoped_lock lock(mutex_);
  for (auto& [id, entry] : batch) {
    if (entry.sink.expired()) continue;
    auto [at, fresh] = pending_.try_emplace(id, entry);
    if (fresh) continue;
    at->second.ack.offset = std::max(at->second.ack.offset, entry.ack.offset);
    at->second.ack.ended = at->second.ack.ended || entry.ack.ended;
  }
  if (!armed_ && !pending_.empty()) arm(options_.retry_after);
}

}  // namespace helio::link
