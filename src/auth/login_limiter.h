#pragma once
#include "base/clock.h"

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace helio::auth {

/// Counts failed logins by peer: a burst of ten, then one each six seconds. Remembers at most 4,096 peers, the ones that failed last. Any
/// thread.
class LoginLimiter {
 public:
  explicit LoginLimiter(const Clock& clock) : clock_(clock) {}

  /// Takes note of a failure. How long the peer must wait when it has used up its failures, else nullopt.
  std::optional<Duration> failed(std::string_view peer);
  [[nodiscard]] std::size_t peers() const;

 private:
  struct Entry {
    std::string peer;
    MonoTime empty_at;  ///< when all its failures will be forgiven
  };

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::list<Entry> recent_;  ///< the one that failed last first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_peer_;
};

}  // namespace helio::auth
