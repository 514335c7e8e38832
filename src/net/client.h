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
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

/// One kept-alive connection, opened on demand, re-opened once when the peer closed it between requests. One thread at a time.
/// Errors: unavailable (refused, reset), deadline_exceeded, invalid_argument (URL).
class HttpClient {
 public:
  /// `base_url`: http://host:port[/prefix]; `http+unix` and https come with TLS (docs/limits.md).
  static Result<std::unique_ptr<HttpClient>> create(std::string base_url, Headers default_headers = {});
  virtual ~HttpClient() = default;
  virtual Result<ClientResponse> send(const ClientRequest& request) = 0;
  /// Calls `on_data` with pieces as they come; it returns false to stop. The body of the response stays empty for 2xx.
  virtual Result<ClientResponse> stream(const ClientRequest& request, std::function<bool(std::string_view)> on_data) = 0;
};

/// Connects and keeps going by itself: no reconnect here, on_close tells. Handlers run on the loop. Errors of the handshake go to on_close
/// too.
std::shared_ptr<WsSession> ws_connect(rt::EventLoop& loop, const std::string& url, const Headers& headers, Duration deadline,
                                      std::function<void(std::shared_ptr<WsSession>)> on_open, WsHandlers handlers);

/// Percent-encodes one path segment or query value.
std::string url_encode(std::string_view text);

}  // namespace helio::net
