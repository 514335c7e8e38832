#pragma once
// Connections to where requests are carried on to, kept open between them.

#include "net/asio_types.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace helio::net {

/// Loop thread.
class UpstreamPool : public std::enable_shared_from_this<UpstreamPool> {
 public:
  explicit UpstreamPool(Executor executor) : timer_(executor) {}

  /// A connection that is open as far as this side knows, or nothing.
  std::optional<Socket> take(const Tcp::endpoint& to);
  /// Keeps it for ten seconds, unless there are many of them.
  void keep(const Tcp::endpoint& to, Socket socket);
  /// Closes what is kept; nothing is kept any more.
  void close();

 private:
  struct Kept {
    Socket socket;
    SteadyClock::time_point until;
  };
  void arm();
  void expire();

  std::map<Tcp::endpoint, std::vector<Kept>> idle_;
  std::size_t count_ = 0;
  Timer timer_;
  bool armed_ = false;
  bool closed_ = false;
};

}  // namespace helio::net
