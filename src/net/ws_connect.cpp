#include "base/log.h"
#include "net/client.h"
#include "net/target.h"
#include "net/ws_conn.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <exception>
#include <utility>
#include <vector>

namespace helio::net {

namespace websocket = boost::beast::websocket;

namespace {

constexpr std::size_t kClientMessageLimit = 4U << 20U;

ErrorCode code_of_status(unsigned status) {
  switch (status) {
    case 400:
      return ErrorCode::invalid_argument;
    case 401:
      return ErrorCode::unauthenticated;
    case 403:
      return ErrorCode::permission_denied;
    case 404:
      return ErrorCode::not_found;
    case 409:
      return ErrorCode::conflict;
    case 429:
      return ErrorCode::resource_exhausted;
    default:
      return ErrorCode::unavailable;
  }
}

struct Dial {
  std::shared_ptr<WsConn> conn;
  Url url;
  Headers headers;
  std::function<void(std::shared_ptr<WsSession>)> on_open;
  Timer deadline;
  asio::ip::basic_resolver<Tcp, Executor> resolver;
  bool late = false;
};

Awaitable<Result<void>> connect_socket(std::shared_ptr<Dial> dial) {
  std::vector<Tcp::endpoint> endpoints;
  ErrorInfo literal;
  const auto address = asio::ip::make_address(dial->url.host, literal);
  if (!literal) {
    endpoints.emplace_back(address, static_cast<std::uint16_t>(std::stoi(dial->url.port)));
  } else {
    const auto resolved = co_await dial->resolver.async_resolve(dial->url.host, dial->url.port, kAwait);
    const auto& [ec, results] = resolved;
    if (ec) co_return fail(ErrorCode::unavailable, "resolve {}: {}", dial->url.host, ec.message());
    for (const auto& entry : results) endpoints.push_back(entry.endpoint());
  }
  ErrorInfo last = asio::error::host_not_found;
  Socket& socket = dial->conn->stream().next_layer();
  for (const Tcp::endpoint& endpoint : endpoints) {
    if (dial->conn->finished()) break;
    ErrorInfo ignored;
    socket.close(ignored);
    const auto connected = co_await socket.async_connect(endpoint, kAwait);
    const auto& [ec] = connected;
    last = ec;
    if (!ec) break;
  }
  if (last) co_return fail(ErrorCode::unavailable, "connect to {}: {}", dial->url.authority, last.message());
  socket.set_option(Tcp::no_delay(true), last);
  co_return Result<void>();
}

Awaitable<Result<void>> shake_hands(std::shared_ptr<Dial> dial) {
  dial->conn->stream().set_option(websocket::stream_base::decorator([dial](websocket::request_type& request) {
    for (const auto& [name, value] : dial->headers) request.set(name, value);
  }));
  websocket::response_type response;
  const auto done = co_await dial->conn->stream().async_handshake(response, dial->url.authority, dial->url.path, kAwait);
  const auto& [ec] = done;
  dial->conn->stream().set_option(websocket::stream_base::decorator([](websocket::request_type&) {}));
  if (ec == websocket::error::upgrade_declined) {
    const unsigned status = response.result_int();
    Error refused(code_of_status(status), fmt::format("{} refused the websocket with status {}", dial->url.authority, status));
    co_return fail(std::move(refused).with("status", std::to_string(status)));
  }
  if (ec) co_return fail(ErrorCode::unavailable, "websocket handshake with {}: {}", dial->url.authority, ec.message());
  co_return Result<void>();
}

Awaitable<void> run_dial(std::shared_ptr<Dial> dial) {
  dial->conn->begin_use();
  Result<void> done = co_await connect_socket(dial);
  if (done && !dial->conn->finished()) done = co_await shake_hands(dial);
  dial->deadline.cancel();
  if (dial->late) {
    dial->conn->finish(Error(ErrorCode::deadline_exceeded, fmt::format("no websocket to {} in time", dial->url.authority)));
  } else if (!done) {
    dial->conn->finish(done.error());
  } else if (!dial->conn->finished()) {
    dial->conn->opened();
    if (dial->on_open) dial->on_open(dial->conn);
  }
  dial->conn->end_use();
}

/// Errors of the arguments come by on_close like all others.
Result<void> check(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (name.empty() || name.find_first_of("\r\n: ") != std::string::npos || value.find_first_of("\r\n") != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "bad header '{}'", name);
    }
  }
  return {};
}

}  // namespace

std::shared_ptr<WsSession> ws_connect(rt::EventLoop& loop, const std::string& url, const Headers& headers, Duration deadline,
                                      std::function<void(std::shared_ptr<WsSession>)> on_open, WsHandlers handlers) {
  const Executor executor = loop.context().get_executor();
  Result<Url> target = parse_url(url, "ws");
  WsConn::Limits limits;
  limits.message = kClientMessageLimit;
  auto conn = std::make_shared<WsConn>(loop, Socket(executor), target ? target->authority : url, limits);
  Result<void> valid = target ? check(headers) : Result<void>(fail(target.error()));
  auto dial = std::make_shared<Dial>(Dial{.conn = conn,
                                          .url = target ? *target : Url{},
                                          .headers = headers,
                                          .on_open = std::move(on_open),
                                          .deadline = Timer(executor),
                                          .resolver = asio::ip::basic_resolver<Tcp, Executor>(executor)});
  if (dial->url.path.empty()) dial->url.path = "/";
  loop.post([dial, deadline, valid = std::move(valid), handlers = std::move(handlers)]() mutable {
    dial->conn->set_handlers(std::move(handlers));
    if (!valid) return dial->conn->finish(valid.error());
    dial->deadline.expires_after(deadline);
    dial->deadline.async_wait([dial](const ErrorInfo& ec) {
      if (ec || dial->conn->finished()) return;
      dial->late = true;
      dial->resolver.cancel();
      ErrorInfo ignored;
      dial->conn->stream().next_layer().close(ignored);  // run_dial() sees it and ends
    });
    asio::co_spawn(dial->deadline.get_executor(), run_dial(dial), [dial](std::exception_ptr failure) {
      if (failure) dial->conn->finish(Error(ErrorCode::internal, "the websocket client failed"));
    });
  });
  return conn;
}

}  // namespace helio::net
