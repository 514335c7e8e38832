#include "auth/login_limiter.h"

#include <algorithm>

namespace helio::auth {
namespace {
constexpr int kBurst = 10;
constexpr Duration kForgiven = 6s;
constexpr std::size_t kMaxPeers = 4096;
}  // namespace

std::optional<Duration> LoginLimiter::failed(std::string_view peer) {
  const std::scoped_lock lock(mutex_);
  const MonoTime now = clock_.mono();
  auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) {
    if (recent_.size() >= kMaxPeers) {
      by_peer_.erase(recent_.back().peer);
      recent_.pop_back();
    }
    recent_.push_front({std::string(peer), now});
    found = by_peer_.emplace(recent_.front().peer, recent_.begin()).first;
  } else {
    recent_.splice(recent_.begin(), recent_, found->second);
  }
  Entry& entry = *found->second;
  entry.empty_at = std::max(entry.empty_at, now);
  const Duration used = entry.empty_at - now;
  if (used + kForgiven > kBurst * kForgiven) return used + kForgiven - kBurst * kForgiven;
  entry.empty_at = entry.empty_at + kForgiven;
  return std::nullopt;
}

std::size_t LoginLimiter::peers() const {
  const std::scoped_lock lock(mutex_);
  return recent_.size();
}

}  // namespace helio::auth
