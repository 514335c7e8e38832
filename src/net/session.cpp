#include "net/session.h"

#include "base/log.h"
#include "net/offload.h"
#include "net/response_head.h"
#include "net/socket_io.h"
#include "net/target.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <exception>
#include <utility>

namespace helio::net {

namespace http = boost::beast::http;

namespace {

constexpr std::size_t kSpoolBatch = 256U << 10U;
constexpr int kReadsInARow = 16;
constexpr std::size_t kKeepCapacity = 16U << 10U;
constexpr Duration kLinger = 2s;
constexpr std::size_t kAheadMost = 256U << 10U;  ///< of requests that a client sends while an answer is under way

void log_exception(std::string_view method, std::string_view path, const std::exception& e) {
  log::error("http: {} {}: the handler threw: {}", method, path, e.what());
}
Response internal_problem() { return problem(Error(ErrorCode::internal, "internal error; the server's log says more")); }
Response busy_problem() {
  Response response = problem(Error(ErrorCode::unavailable, "the server is busy; try again"));
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

void Session::start(std::shared_ptr<ServerCore> core, Socket socket, std::string peer, Mode mode, Transport transport) {
  const Executor executor = socket.get_executor();
  auto self = std::make_shared<Session>(std::move(core), std::move(socket), std::move(peer), transport);
  asio::co_spawn(executor, run(std::move(self), mode), [](std::exception_ptr failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      log::error("http: a connection ended by an exception: {}", e.what());
    }
  });
}

Session::Session(std::shared_ptr<ServerCore> core, Socket socket, std::string peer, Transport transport)
    : core_(std::move(core)), socket_(std::move(socket)), peer_(std::move(peer)), transport_(transport) {
  deadline_ = std::make_shared<Deadline>(socket_.get_executor(), [this] {
    late_ = true;
    ErrorInfo ignored;
    socket_.cancel(ignored);
    if (upstream_) upstream_->cancel(ignored);
  });
  core_->sessions.insert(this);
  ++core_->live;
}

Session::~Session() {
  let_go();
  deadline_->end();
  core_->sessions.erase(this);
  core_->release();
}

void Session::shut() {
  ErrorInfo ignored;
  socket_.close(ignored);
  if (upstream_) upstream_->close(ignored);
  deadline_->clear();
  if (stream_) stream_->interrupt();
}

Awaitable<void> Session::run(std::shared_ptr<Session> self, Mode mode) {
  Next next = Next::again;
  if (mode == Mode::refuse) {
    Response full = problem(Error(ErrorCode::unavailable, "too many connections"));
    next = co_await self->respond(std::move(full));
  }
  while (next == Next::again) {
    self->reset_request();
    next = co_await self->exchange();
  }
  self->shut();
}

bool Session::hold(std::shared_ptr<Cord> cord) {
  if (!cord) return true;
  cord_ = std::move(cord);
  return cord_->tie([loop = &core_->loop, session = weak_from_this(), held = std::weak_ptr(cord_)] {
    loop->post([session, held] {
      const auto self = session.lock();
      // By now the connection may serve another request, which is somebody else's behind a proxy.
      if (self && self->cord_ && self->cord_ == held.lock()) self->shut();
    });
  });
}

void Session::let_go() {
  if (cord_) cord_->untie();
  cord_.reset();
}

void Session::reset_request() {
  let_go();
  request_ = {};
  match_ = {};
  keep_alive_ = false;
  // An upload must not make an idle connection expensive for good.
  if (input_.capacity() > kKeepCapacity && input_.empty()) input_ = {};
  if (head_.capacity() > kKeepCapacity) head_ = {};
  spool_bytes_ = {};
}

Awaitable<Session::Next> Session::exchange() {
  std::optional<Response> answer = co_await read_head();
  if (gone_) co_return Next::end;
  if (!answer) answer = route_request();
  if (!answer && match_.route->options.quick && parser_->is_done()) {
    if (auto quick = match_.route->options.quick(request_)) co_return co_await finish(std::move(*quick));
  }
  // A body that is here already costs nobody anything: the handler itself says who may not call.
  if (!answer && match_.route->options.admit && !has_whole_body()) answer = co_await admit();
  if (!answer) answer = co_await read_body();
  if (gone_) co_return Next::end;
  Next next = Next::end;
  if (answer) {
    next = co_await finish(std::move(*answer));
  } else if (match_.route->websocket) {
    next = co_await upgrade();
  } else {
    next = co_await call_handler();
  }
  spool_.reset();
  co_return next;
}

Awaitable<std::optional<Response>> Session::read_head() {
  parser_.emplace(request_, core_->options.header_limit);
  bool started = !input_.empty();
  deadline_->set(started ? core_->options.header_deadline : core_->options.idle_deadline);
  ErrorInfo ec = parse({});
  while (true) {
    if (ec && ec != http::error::need_more) co_return RequestParser::refusal(ec);
    if (parser_->is_header_done()) break;
    const Input input = co_await receive(started ? Expect::now : Expect::later);
    if (input == Input::gone || (input == Input::late && !started)) {
      gone_ = true;
      co_return std::nullopt;
    }
    if (input == Input::late) co_return problem(Error(ErrorCode::deadline_exceeded, "the request's head did not come in time"), 408);
    ec = parse(fresh_);
    if (!started && !parser_->is_header_done()) deadline_->set(core_->options.header_deadline);
    started = true;
  }
  deadline_->clear();
  co_return std::nullopt;
}

ErrorInfo Session::parse(std::string_view fresh) {
  std::string_view from = fresh;
  if (!input_.empty()) {
    input_.append(fresh);
    from = input_;
  }
  ErrorInfo ec;
  const std::size_t used = parser_->feed(from, ec);
  if (input_.empty()) {
    input_.assign(from.substr(used));
  } else {
    input_.erase(0, used);
  }
  return ec;
}

std::optional<Response> Session::route_request() {
  const auto bad = [](std::string why) { return problem(Error(ErrorCode::invalid_argument, std::move(why))); };
  if (const std::string_view complaint = parser_->complaint(); !complaint.empty())
    return bad("malformed request: " + std::string(complaint));
  keep_alive_ = parser_->keep_alive() && !core_->stopping;
  Result<Target> target = parse_target(parser_->target());
  if (!target) return problem(target.error());
  const bool websocket = parser_->wants_websocket() && parser_->is_http11() && request_.method == "GET";
  match_ = core_->router.impl().match(request_.method, target->segments,
                                      websocket ? Router::Impl::Upgrade::websocket : Router::Impl::Upgrade::no);
  if (match_.route == nullptr) {
    if (!match_.allow.empty()) {
      Response response = problem(Error(ErrorCode::unimplemented, fmt::format("method {} is not allowed here", request_.method)), 405);
      response.headers.emplace_back("Allow", match_.allow);
      return response;
    }
    if (match_.only_websocket) {
      Response response = problem(Error(ErrorCode::invalid_argument, "this path wants a websocket"), 426);
      response.headers.emplace_back("Upgrade", "websocket");
      return response;
    }
    return problem(Error(ErrorCode::not_found, "no such path"));
  }
  const std::uint64_t limit = match_.route->options.body_limit;
  if (const auto length = parser_->content_length(); length && *length > limit) return RequestParser::refusal(http::error::body_limit);
  parser_->body_limit(limit);
  request_.target = parser_->target();
  request_.path = std::move(target->path);
  request_.query = std::move(target->query);
  request_.peer = peer_;
  request_.secure = transport_ == Transport::tls;
  for (std::size_t i = 0; i < match_.captured.size(); ++i) {
    request_.params.insert_or_assign(match_.route->names[i], std::move(match_.captured[i]));
  }
  return std::nullopt;
}

bool Session::has_whole_body() const {
  if (match_.route->options.spool) return false;
  const auto length = parser_->content_length();
  return parser_->is_done() || (length && *length <= input_.size());
}

Awaitable<std::optional<Response>> Session::admit() {
  std::optional<Response> answer;
  auto work = [this, &answer] {
    try {
      answer = match_.route->options.admit(request_);
    } catch (const std::exception& e) {
      log_exception(request_.method, request_.path, e);
      answer = internal_problem();
    }
  };
  const bool ran = co_await offload(core_->pool, socket_.get_executor(), std::move(work));
  if (!ran) answer = busy_problem();
  co_return answer;
}

Awaitable<std::optional<Response>> Session::read_body() {
  const bool spooled = match_.route->options.spool;
  if (parser_->is_done() && !spooled) co_return std::nullopt;
  if (parser_->expects_continue() && parser_->is_http11() && !parser_->is_done() && input_.empty()) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    std::array<asio::const_buffer, 1> buffers{asio::const_buffer(kContinue.data(), kContinue.size())};
    gone_ = !co_await write(buffers);
  }
  if (const auto length = parser_->content_length(); length && !spooled) request_.body.reserve(*length);
  parser_->set_sink(spooled ? spool_bytes_ : request_.body);
  ErrorInfo ec;
  if (!parser_->is_done()) ec = parse({});
  while (!gone_) {
    if (ec && ec != http::error::need_more) co_return RequestParser::refusal(ec);
    if (spooled && (spool_bytes_.size() >= kSpoolBatch || parser_->is_done())) {
      deadline_->clear();
      std::optional<Response> failure = co_await spool_out();
      if (failure) co_return failure;
    }
    if (parser_->is_done()) break;
    deadline_->set(core_->options.body_deadline);
    const Input input = co_await receive(Expect::now);
    if (input == Input::late) co_return problem(Error(ErrorCode::deadline_exceeded, "the request's body did not come in time"), 408);
    gone_ = input == Input::gone;
    if (!gone_) ec = parse(fresh_);
  }
  deadline_->clear();
  if (spool_) request_.body_file = spool_->path();
  co_return std::nullopt;
}

Awaitable<std::optional<Response>> Session::spool_out() {
  std::optional<Response> failure;
  auto work = [this, &failure] {
    Result<void> done;
    if (!spool_) {
      spool_ = std::make_unique<SpoolFile>();
      done = spool_->open(core_->options.spool_dir);
    }
    if (done) done = spool_->append(spool_bytes_);
    spool_bytes_.clear();
    if (done) return;
    log::error("http: {} {}: {}", request_.method, request_.path, done.error().text());
    failure = done.error().code() == ErrorCode::storage_full ? problem(done.error()) : internal_problem();
  };
  const bool ran = co_await offload(core_->pool, socket_.get_executor(), std::move(work));
  if (!ran) failure = busy_problem();
  co_return failure;
}

Response Session::run_handler() {
  try {
    return match_.route->handler(request_);
  } catch (const std::exception& e) {
    log_exception(request_.method, request_.path, e);
    return internal_problem();
  }
}

Awaitable<Session::Next> Session::call_handler() {
  Response response;
  auto work = [this, &response] {
    response = run_handler();
    if (response.forward || !response.source || request_.method == "HEAD") return;
    // The first piece comes with the same hop.
    stream_ = std::make_unique<BodyStream>(core_->loop, socket_.get_executor(), std::move(response.source));
    batch_ = stream_->pull(BodyStream::Silence::no);
  };
  const bool ran = co_await offload(core_->pool, socket_.get_executor(), std::move(work));
  if (!ran) response = busy_problem();
  const Next next = co_await finish(std::move(response));
  stream_.reset();
  batch_ = {};
  co_return next;
}

Awaitable<Session::Next> Session::finish(Response response) {
  if (!hold(std::move(response.cord))) return hang_up();
  if (response.tunnel) return open_tunnel(std::move(response.tunnel));
  return response.forward ? carry(std::move(response.forward)) : respond(std::move(response));
}

Awaitable<Session::Next> Session::respond(Response response) {
  // With unread body bytes nobody could tell where the next request starts.
  if (!parser_ || !parser_->is_done()) keep_alive_ = false;
  const bool http11 = !parser_ || parser_->is_http11();
  const bool streams = stream_ != nullptr || response.source != nullptr;
  const bool may_have_body = response.status >= 200 && response.status != 204 && response.status != 304;
  if (streams && !http11) keep_alive_ = false;
  const std::string& body = response.shared_body ? *response.shared_body : response.body;

  HeadOptions options{.date = core_->date(),
                      .length = {},
                      .chunked = streams && may_have_body && http11,
                      .close = !keep_alive_,
                      .http10_keep_alive = keep_alive_ && !http11,
                      .always = core_->options.always};
  if (!streams && may_have_body) options.length = body.size();
  head_.clear();
  if (!write_head(response, options, head_)) {
    log::error("http: {} {}: a response header holds a line break", request_.method, request_.path);
    stream_.reset();
    response = internal_problem();
    options.chunked = false;
    options.length = body.size();
    write_head(response, options, head_);
  }

  bool sent = false;
  if (stream_ && may_have_body) {
    sent = co_await send_stream(options.chunked);
  } else {
    const bool with_body = may_have_body && options.length && request_.method != "HEAD";
    std::array<asio::const_buffer, 2> buffers{asio::buffer(head_), asio::buffer(body.data(), with_body ? body.size() : 0)};
    std::span<asio::const_buffer> rest(buffers);
    const Written written = write_now(socket_, rest);
    sent = written == Written::all;
    if (written == Written::blocked) sent = co_await write(rest);
  }
  if (!sent) co_return Next::end;
  if (keep_alive_) co_return Next::again;
  co_await linger();
  co_return Next::end;
}

Awaitable<bool> Session::send_stream(bool chunked) {
  auto silent_since = SteadyClock::now();
  bool sent = co_await send_batch(chunked);
  while (sent && batch_.last != BodySource::Piece::Kind::end) {
    silence_ = BodyStream::Silence::no;
    if (batch_.last == BodySource::Piece::Kind::pending) {
      watch_peer();
      const auto silent_for = duration_cast<Duration>(SteadyClock::now() - silent_since);
      silence_ = co_await stream_->wait(std::max(core_->options.keep_alive_interval - silent_for, Duration(0)));
      if (silence_ == BodyStream::Silence::yes) silent_since = SteadyClock::now();
    }
    if (closed()) co_return false;
    sent = co_await pull();
    if (!batch_.pieces.empty()) silent_since = SteadyClock::now();
    if (sent) sent = co_await send_batch(chunked);
  }
  if (watching_) {
    ErrorInfo ignored;
    socket_.cancel(ignored);
  }
  co_return sent;
}

Awaitable<bool> Session::pull() {
  stream_->listen();
  batch_ = {};
  bool ran = false;
  while (!ran) {
    auto work = [this] { batch_ = stream_->pull(silence_); };
    ran = co_await offload(core_->pool, socket_.get_executor(), std::move(work));
    if (ran) break;
    // The pool is full. A stream that is under way is not refused: it waits for its turn.
    Timer pause(socket_.get_executor(), std::chrono::milliseconds(20));
    const auto waited = co_await pause.async_wait(kAwait);
    static_cast<void>(waited);
    if (closed()) co_return false;
  }
  co_return !closed();
}

Awaitable<bool> Session::send_batch(bool chunked) {
  if (closed()) co_return false;
  std::size_t size = 0;
  for (const std::string& piece : batch_.pieces) size += piece.size();
  const bool last = batch_.last == BodySource::Piece::Kind::end && !batch_.failed;
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(batch_.pieces.size() + 3);
  if (!head_.empty()) buffers.emplace_back(asio::buffer(head_));
  const std::string size_line = fmt::format("{:x}\r\n", size);
  if (chunked && size > 0) buffers.emplace_back(asio::buffer(size_line));
  for (const std::string& piece : batch_.pieces) buffers.emplace_back(asio::buffer(piece));
  std::string_view tail;
  if (chunked && size > 0) tail = last ? "\r\n0\r\n\r\n" : "\r\n";
  if (chunked && size == 0 && last) tail = "0\r\n\r\n";
  buffers.emplace_back(tail.data(), tail.size());
  const bool sent = co_await write(buffers);
  head_.clear();
  // Without the last chunk the client knows that the body is not whole.
  co_return sent && !batch_.failed;
}

Awaitable<bool> Session::write_to(Socket& socket, std::span<asio::const_buffer> buffers) {
  Written written = write_now(socket, buffers);
  while (written == Written::blocked) {
    deadline_->set(core_->options.write_deadline);  // anew after each byte of progress
    const auto waited = co_await socket.async_wait(Socket::wait_write, kAwait);
    const auto& [ec] = waited;
    if (ec || closed()) co_return false;
    written = write_now(socket, buffers);
  }
  deadline_->clear();
  co_return written == Written::all;
}

Awaitable<Session::Input> Session::receive(Expect expect) {
  bool wait = expect == Expect::later || ++reads_in_a_row_ >= kReadsInARow;  // others get their turn
  while (!closed()) {
    if (wait) {
      reads_in_a_row_ = 0;
      const auto waited = co_await socket_.async_wait(Socket::wait_read, kAwait);
      const auto& [wait_ec] = waited;
      if (std::exchange(late_, false)) co_return Input::late;
      if (wait_ec || closed()) break;
    }
    ErrorInfo ec;
    const std::size_t n = socket_.read_some(asio::buffer(core_->scratch), ec);
    wait = would_block(ec);
    if (wait) continue;
    if (ec) break;
    fresh_ = std::string_view(core_->scratch.data(), n);
    co_return Input::data;
  }
  co_return Input::gone;
}

Awaitable<void> Session::linger() {
  ErrorInfo ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  deadline_->set(kLinger);
  Input input = Input::data;
  while (input == Input::data) input = co_await receive(Expect::now);
}

/// While an answer is under way nothing else reads from the client, so its end would not be noticed. What it sends meanwhile is kept.
void Session::watch_peer() {
  if (watching_) return;
  watching_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const ErrorInfo& wait_ec) {
    self->watching_ = false;
    if (wait_ec || (!self->stream_ && !self->awaits_answer_)) return;
    ErrorInfo ec;
    const std::size_t n = self->socket_.read_some(asio::buffer(self->core_->scratch), ec);
    if (ec && !would_block(ec)) return self->shut();
    self->input_.append(self->core_->scratch.data(), n);
    if (self->input_.size() > kAheadMost) return self->shut();
    self->watch_peer();
  });
}

Awaitable<Session::Next> Session::upgrade() {
  WsAccept accept;
  auto work = [this, &accept] {
    try {
      accept = match_.route->websocket(request_);
    } catch (const std::exception& e) {
      log_exception(request_.method, request_.path, e);
      accept.refuse = internal_problem();
    }
  };
  const bool ran = co_await offload(core_->pool, socket_.get_executor(), std::move(work));
  if (!ran) accept.refuse = busy_problem();
  if (!accept.refuse && !input_.empty()) {
    accept.refuse = problem(Error(ErrorCode::invalid_argument, "bytes after the upgrade request"));
  }
  Next next = Next::end;
  if (accept.refuse) {
    next = co_await respond(std::move(*accept.refuse));
  } else if (accept.forward) {
    if (hold(std::move(accept.cord))) next = co_await tunnel(std::move(accept.forward));
  } else if (!closed()) {
    become_websocket(std::move(accept));
  }
  co_return next;
}

void Session::become_websocket(WsAccept accept) {
  auto request = std::make_shared<http::request<http::empty_body>>(http::verb::get, parser_->target(), 11);
  for (const auto& [name, value] : request_.headers) request->insert(name, value);
  WsConn::Limits limits;
  limits.message = core_->options.ws_message_limit;
  auto conn = std::make_shared<WsConn>(core_->loop, std::move(socket_), peer_, limits);
  if (accept.cut_on_stop) conn->set_cut_on_stop();
  if (accept.cord) conn->hold(std::move(accept.cord));
  core_->websockets.insert(conn.get());
  ++core_->live;
  conn->set_on_gone([core = core_, raw = conn.get()] {
    core->websockets.erase(raw);
    core->release();
  });
  conn->begin_use();
  conn->stream().async_accept(*request, [core = core_, conn, request, open = std::move(accept.open)](const ErrorInfo& ec) mutable {
    conn->end_use();
    if (ec) return conn->finish(Error(ErrorCode::unavailable, "handshake: " + ec.message()));
    auto work = [core, conn, open = std::move(open)] {
      WsHandlers handlers;
      try {
        if (open) handlers = open(conn);
      } catch (const std::exception& e) {
        log::error("http: a websocket's handler threw: {}", e.what());
        conn->close(1011, "internal error");
      }
      core->loop.post([conn, handlers = std::move(handlers)]() mutable {
        conn->set_handlers(std::move(handlers));
        conn->opened();
      });
    };
    if (core->pool.try_post(std::move(work))) return;
    conn->close(1013, "busy");
    conn->opened();
  });
}

}  // namespace helio::net
