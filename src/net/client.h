#pragma once
// Blocking HTTP client for worker threads, the CLI and the agent; and a websocket client on an event loop.

#include "net/http.h"
#include "net/websocket.h"
#include "rt/event_loop.h"

#include <functional>
#include <memory>
#include <string>

namespace helio::net {

struct ClientRequest {
  std::string method = "GET";
  std::string target;  ///< path and query, encoded, appended to the base URL's path
  Headers headers;
  std::string body;
  std::string body_file;   ///< streamed from this file instead of body
  Duration deadline{30s};  ///< of the whole exchange; for streams: without progress
  /// Of the response body kept in memory; above it resource_exhausted.
  std::size_t response_limit = 64U << 20U;
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

/// One kept-alive connection, opened on demand, re-opened once when the peer closed it between requests. One thread at a time.
/// A request is sent again only when the peer cannot have acted on it: nothing was sent, or it is GET or HEAD and nothing came back.
/// Errors: unavailable (refused, reset), deadline_exceeded, cancelled, resource_exhausted (response too large), invalid_argument (URL).
/// An HTTP status is not an error: look at ClientResponse::status.
class HttpClient {
 public:
  /// `base_url`: http or https://host:port[/prefix]. `roots`: PEM file of certificates that https trusts; empty: the system's.
  static Result<std::unique_ptr<HttpClient>> create(std::string base_url, Headers default_headers = {}, std::string roots = {});
  virtual ~HttpClient() = default;
  virtual Result<ClientResponse> send(const ClientRequest& request) = 0;
  /// Calls `on_data` with pieces as they come; it returns false to stop. The body of the response stays empty for 2xx.
  virtual Result<ClientResponse> stream(const ClientRequest& request, std::function<bool(std::string_view)> on_data) = 0;
  /// Makes the running send() or stream() return `cancelled`, or the next one when none is running; the one after it works again.
  /// Any thread.
  virtual void cancel() = 0;
};

/// Connects and keeps going by itself: no reconnect here, on_close tells. Handlers run on the loop. Errors of the handshake go to on_close
/// too: a refusal has the code that belongs to its status (401: unauthenticated) and the status as argument `status`.
/// `url`: ws:// or http://host:port/path. Messages from the server may have 4 MiB. Any thread.
std::shared_ptr<WsSession> ws_connect(rt::EventLoop& loop, const std::string& url, const Headers& headers, Duration deadline,
                                      std::function<void(std::shared_ptr<WsSession>)> on_open, WsHandlers handlers);

}  // namespace helio::net
