#pragma once
// HTTP/1.1 server with websocket upgrade. Handlers are plain functions on the worker pool; no coroutine leaves net/.

#include "net/http.h"
#include "net/websocket.h"
#include "rt/event_loop.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace helio::net {

struct RouteOptions {
  std::size_t body_limit = 1U << 20U;  ///< 413 above it, before the body is read when Content-Length says so
  bool spool = false;                  ///< body goes to a file in ServerOptions::spool_dir
  /// Asked first, of requests without a body, on the loop thread: an answer that takes no time and cannot block. Nothing: the handler says.
  std::function<std::optional<Response>(Request&)> quick;
  /// Asked before a body is waited for: a response refuses the request (no token, say). Not asked when the whole body came with the head,
  /// so the handler has to check too. Worker pool.
  std::function<std::optional<Response>(Request&)> admit;
};

/// May block for a while in the store, but waits for nothing that may never come: use a BodySource for that.
using Handler = std::function<Response(Request&)>;
/// Decides before the upgrade: handlers for this session, or the response that refuses it. Both functions run on the worker pool; `open`
/// runs after the upgrade, may send at once, and nothing is read before it has returned.
struct WsAccept {
  std::function<WsHandlers(std::shared_ptr<WsSession>)> open;
  std::optional<Response> refuse;
  std::unique_ptr<Forward> forward;  ///< instead of `open`: the upgrade goes on to there, and then every byte
  /// When the server stops, the connection is dropped without a close frame: for protocols in which a clean close means the end.
  bool cut_on_stop = false;
  std::shared_ptr<Cord> cord;  ///< ends the session or the tunnel early
};
using WsHandler = std::function<WsAccept(Request&)>;

/// Routes by method and path; parts: literal, `{name}` (one segment), `{name...}` (the rest). Fill before the server starts.
class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  void add(std::string method, std::string pattern, RouteOptions options, Handler handler);
  void add_websocket(std::string pattern, WsHandler handler);
  /// Every (method, pattern): for the route walk of tests and the OpenAPI document.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> routes() const;

  struct Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one
  std::string spool_dir = "/tmp";
  Duration header_deadline{10s};  ///< from the first byte to the whole head (slow-loris)
  Duration body_deadline{30s};    ///< without a single byte of progress
  Duration idle_deadline{75s};    ///< between requests of one connection
  Duration write_deadline{30s};   ///< a peer that reads nothing for so long is dropped
  std::size_t header_limit = 64U << 10U;
  std::size_t max_connections = 4096;
  Duration keep_alive_interval{15s};         ///< of silence, until BodySource::keep_alive() is sent
  Headers always;                            ///< of every response that has none of that name
  std::size_t ws_message_limit = 1U << 20U;  ///< of one incoming websocket message; above it the session is closed
};

class Server {
 public:
  Server(rt::EventLoop& loop, rt::WorkerPool& pool, Router router, ServerOptions options);
  /// stop().
  ~Server();
  /// Binds and listens. Errors: unavailable (address in use), permission_denied.
  Result<void> start();
  /// Closes the listener first, then the connections, and waits for running handlers. Idempotent. Not from the loop; before the loop stops.
  void stop();
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::size_t connections() const;
  /// Serves a connected stream socket as if it had come by the listener; its bytes came over TLS. Takes the descriptor over. Loop thread.
  void adopt(int descriptor, std::string peer);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace helio::net
