#pragma once
// One HTTP connection of the server: request after request until it ends or becomes a websocket. Loop thread.

#include "net/asio_types.h"
#include "net/body_stream.h"
#include "net/deadline.h"
#include "net/request_parser.h"
#include "net/server_core.h"
#include "net/spool.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace helio::net {

class Session : public std::enable_shared_from_this<Session> {
 public:
  enum class Mode { serve, refuse };
  enum class Transport { plain, tls };
  /// `refuse`: too many connections; says so and closes.
  static void start(std::shared_ptr<ServerCore> core, Socket socket, std::string peer, Mode mode, Transport transport = Transport::plain);
  Session(std::shared_ptr<ServerCore> core, Socket socket, std::string peer, Transport transport);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Closes the socket; the coroutine sees it and ends.
  void shut();

 private:
  enum class Next { again, end };
  enum class Input { data, gone, late };

  static Awaitable<void> run(std::shared_ptr<Session> self, Mode mode);
  Awaitable<Next> exchange();
  /// The head of the next request; empty answer: go on. `gone_` when there is none.
  Awaitable<std::optional<Response>> read_head();
  std::optional<Response> route_request();
  [[nodiscard]] bool has_whole_body() const;
  Awaitable<std::optional<Response>> admit();
  Awaitable<std::optional<Response>> read_body();
  Awaitable<std::optional<Response>> spool_out();
  Awaitable<Next> call_handler();
  Response run_handler();
  Awaitable<Next> upgrade();
  void become_websocket(WsAccept accept);
  /// From now on, until let_go(), cutting the cord shuts this connection. False: it is cut already.
  bool hold(std::shared_ptr<Cord> cord);
  void let_go();

  enum class Expect { later, now };
  /// Bytes in `fresh_`, which is good until the next suspension; under the deadline that is set.
  Awaitable<Input> receive(Expect expect);
  /// Feeds what is there to the parser and keeps the rest.
  ErrorInfo parse(std::string_view fresh);

  /// Answers, or carries the request on.
  Awaitable<Next> finish(Response response);
  /// The answer was cut before it began: there is none.
  static Awaitable<Next> hang_up() { co_return Next::end; }
  Awaitable<Next> respond(Response response);
  /// The head is in head_ already.
  Awaitable<bool> send_stream(bool chunked);
  Awaitable<bool> send_batch(bool chunked);
  Awaitable<bool> pull();
  Awaitable<bool> write(std::span<asio::const_buffer> buffers) { return write_to(socket_, buffers); }
  Awaitable<bool> write_to(Socket& socket, std::span<asio::const_buffer> buffers);
  /// The answer goes out, then the connection: what the client is still sending is read and thrown away for a moment, because closing
  /// with unread bytes would reset the connection and lose the answer.
  Awaitable<void> linger();
  void watch_peer();
  void reset_request();

  // session_forward.cpp
  struct Carried;
  enum class Reuse { no, yes };
  enum class Answered { whole, nothing, broken, late, client_gone };
  Awaitable<Next> carry(std::unique_ptr<Forward> forward);
  Awaitable<Next> tunnel(std::unique_ptr<Forward> forward);
  Awaitable<Next> open_tunnel(std::unique_ptr<Tunnel> tunnel);
  /// upstream_, as soon as somebody listens there; or why not.
  Awaitable<std::optional<Error>> wait_for_listener(const Tunnel& tunnel);
  /// Copies in both directions from now on; what the client has sent already goes first.
  Awaitable<void> join(std::unique_ptr<ByteFilter> filter);
  Awaitable<Answered> exchange_with(Carried& carried, Reuse reuse, std::optional<Error>& why);
  /// upstream_, connected; or why not.
  Awaitable<std::optional<Error>> reach(const Forward& forward, Reuse reuse);
  Awaitable<std::optional<Error>> dial(const Tcp::endpoint& to);
  Awaitable<bool> ask(const Forward& forward, bool upgrade);
  Awaitable<Answered> answer(Carried& carried);
  Awaitable<std::string_view> hear();
  bool begin_answer(Carried& carried);
  Awaitable<bool> pass_on(Carried& carried, bool last);
  Awaitable<void> pump(Socket& from, Socket& to, ByteFilter* filter);
  Awaitable<bool> push(std::string bytes, Socket& to);
  [[nodiscard]] bool closed() const { return !socket_.is_open(); }

  std::shared_ptr<ServerCore> core_;
  Socket socket_;
  std::string peer_;
  Transport transport_;
  std::shared_ptr<Deadline> deadline_;
  bool late_ = false;
  bool gone_ = false;
  bool watching_ = false;
  int reads_in_a_row_ = 0;

  std::string input_;           // received, not yet parsed
  std::string_view fresh_;      // in core_->scratch
  std::string head_;            // of the response
  std::shared_ptr<Cord> cord_;  // of the answer that is under way
  Request request_;
  std::optional<RequestParser> parser_;
  RouteMatch match_;
  std::string spool_bytes_;
  std::unique_ptr<SpoolFile> spool_;
  bool keep_alive_ = false;
  std::unique_ptr<BodyStream> stream_;  // of the response being written
  BodyStream::Batch batch_;
  BodyStream::Silence silence_ = BodyStream::Silence::no;
  std::optional<Socket> upstream_;  // where the request is carried on to
  bool upstream_is_kept_ = false;   // from an earlier request
  bool awaits_answer_ = false;      // from there: a client that leaves ends it
};

}  // namespace helio::net
