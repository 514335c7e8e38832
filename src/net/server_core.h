#pragma once
// What the connections of one server share. Loop thread, unless said otherwise.

#include "net/asio_types.h"
#include "net/router_match.h"
#include "net/server.h"
#include "net/upstream.h"
#include "net/ws_conn.h"
#include "rt/event_loop.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace helio::net {

class Session;

struct ServerCore {
  ServerCore(rt::EventLoop& loop_in, rt::WorkerPool& pool_in, Router router_in, ServerOptions options_in);

  rt::EventLoop& loop;
  rt::WorkerPool& pool;
  const Router router;
  const ServerOptions options;
  const std::shared_ptr<UpstreamPool> upstreams;
  /// Every read of every connection lands here and is parsed or copied before the next suspension: idle connections hold no buffer.
  std::array<char, 64U << 10U> scratch;
  std::unordered_set<Session*> sessions;
  std::unordered_set<WsConn*> websockets;
  std::atomic<std::size_t> live{0};  ///< both kinds; read from any thread
  bool stopping = false;

  /// Of this second.
  std::string_view date();
  /// A connection has ended; the last one completes stop().
  void release();
  /// Closes everything; `gone` is fulfilled when the last connection has ended.
  void close_all(std::promise<void> gone);

 private:
  std::int64_t date_second_ = -1;
  std::string date_;
  std::optional<std::promise<void>> gone_;
};

}  // namespace helio::net
