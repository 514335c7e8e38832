// Requests that are carried on to another address, and upgrades that become a tunnel to it.

#include "net/response_head.h"
#include "net/response_parser.h"
#include "net/session.h"
#include "net/socket_io.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/address.hpp>
#include <utility>

namespace helio::net {
namespace {

constexpr Duration kConnectDeadline = 5s;
constexpr Duration kAnswerDeadline = 120s;      ///< until the head of the answer: some of them are computed
constexpr std::size_t kHeldMost = 128U << 10U;  ///< of a head, or of a chunk's first line
constexpr Duration kHalfOpen = 10s;             ///< a tunnel of which one side has ended
constexpr Duration kListenLook = 50ms;          ///< between two tries to reach somebody who does not listen yet

constexpr std::array<std::string_view, 9> kHopByHop{"connection",        "keep-alive", "proxy-connection", "proxy-authenticate", "te",
                                                    "transfer-encoding", "trailer",    "upgrade",          "content-length"};

bool stays(std::string_view name) {
  return std::ranges::any_of(kHopByHop, [name](std::string_view ours) { return same_header(name, ours); });
}

/// Of "Connection: close, X-Mine": headers that are for the next hop alone.
bool is_named_by(const Headers& headers, std::string_view name) {
  auto list = find_header(headers, "Connection");
  while (list && !list->empty()) {
    const std::size_t comma = std::min(list->find(','), list->size());
    std::string_view item = list->substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (same_header(item, name)) return true;
    list = list->substr(std::min(comma + 1, list->size()));
  }
  return false;
}

void add(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

std::string request_head(const Forward& forward, std::string_view method, std::size_t body, bool upgrade) {
  std::string out;
  out.reserve(512);
  const bool v6 = forward.address.contains(':');
  out += method;
  out += ' ';
  out += forward.target;
  out += " HTTP/1.1\r\nHost: ";
  fmt::format_to(std::back_inserter(out), "{}{}{}:{}\r\n", v6 ? "[" : "", forward.address, v6 ? "]" : "", forward.port);
  for (const auto& [name, value] : forward.headers) {
    const bool set = find_header(forward.set, name).has_value();
    if (set || stays(name) || same_header(name, "host") || same_header(name, "expect") || is_named_by(forward.headers, name)) continue;
    add(out, name, value);
  }
  for (const auto& [name, value] : forward.set) add(out, name, value);
  if (upgrade) out += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  const bool takes_body = method == "POST" || method == "PUT" || method == "PATCH";
  if (body > 0 || takes_body) add(out, "Content-Length", fmt::format_int(body).str());
  out += "\r\n";
  return out;
}

/// "/x" becomes "<base>x"; nothing for an address that is elsewhere.
std::string location_below(const std::string& base, std::string_view theirs) {
  const bool inside = theirs.starts_with('/') && !theirs.starts_with("//") && !theirs.contains("..") && !theirs.contains('\\') &&
                      !theirs.contains("%2e") && !theirs.contains("%2E");
  return inside ? base + std::string(theirs.substr(1)) : std::string();
}

Headers answer_headers(const Forward& forward, const Headers& theirs) {
  Headers out;
  out.reserve(theirs.size() + forward.add.size());
  for (const auto& [name, value] : theirs) {
    const auto dropped = [&](std::string_view ours) { return same_header(name, ours); };
    if (stays(name) || is_named_by(theirs, name) || std::ranges::any_of(forward.drop, dropped)) continue;
    if (!forward.location_base.empty() && same_header(name, "Location")) {
      std::string location = location_below(forward.location_base, value);
      if (!location.empty()) out.emplace_back(name, std::move(location));
      continue;
    }
    out.emplace_back(name, value);
  }
  out.insert(out.end(), forward.add.begin(), forward.add.end());
  return out;
}

Response failure(const Forward& forward, const Error& why) {
  if (forward.failed) return forward.failed(why);
  return problem(why, why.code() == ErrorCode::deadline_exceeded ? 504 : 502);
}

}  // namespace

/// One answer on its way from there to the client.
struct Session::Carried {
  Carried(const Forward& forward_in, bool no_body_in, bool upgrade_in) : forward(forward_in), no_body(no_body_in), upgrade(upgrade_in) {
    restart();
  }
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;
  void restart() {
    status = 0;
    headers.clear();
    parser.emplace(status, headers, [this](std::string_view bytes) {
      pieces.emplace_back(bytes.data(), bytes.size());
      size += bytes.size();
      return true;
    });
    parser->skip(no_body);
  }

  const Forward& forward;
  const bool no_body;  ///< of HEAD
  const bool upgrade;
  int status = 0;
  Headers headers;
  std::vector<asio::const_buffer> pieces;  ///< of the body, in core_->scratch or `held`
  std::size_t size = 0;                    ///< of them together
  std::optional<ResponseParser> parser;
  bool head_sent = false;
  bool chunked = false;
  std::string held;   ///< came, but the parser wants more before it takes it
  std::string after;  ///< came behind the answer: the first bytes of a tunnel
};

Awaitable<std::optional<Error>> Session::reach(const Forward& forward, Reuse reuse) {
  ErrorInfo ec;
  const Tcp::endpoint to(asio::ip::make_address(forward.address, ec), forward.port);
  if (ec) co_return Error(ErrorCode::internal, fmt::format("'{}' is no address", forward.address));
  upstream_.reset();
  upstream_is_kept_ = false;
  if (reuse == Reuse::yes) {
    upstream_ = core_->upstreams->take(to);
    upstream_is_kept_ = upstream_.has_value();
  }
  if (upstream_) co_return std::nullopt;
  co_return co_await dial(to);
}

Awaitable<std::optional<Error>> Session::dial(const Tcp::endpoint& to) {
  upstream_.emplace(socket_.get_executor());
  deadline_->set(kConnectDeadline);
  const auto connected = co_await upstream_->async_connect(to, kAwait);
  deadline_->clear();
  if (std::exchange(late_, false)) co_return Error(ErrorCode::deadline_exceeded, fmt::format("no connection to {}", to.port()));
  if (const auto& [failed] = connected; failed) co_return Error(ErrorCode::unavailable, fmt::format("connect: {}", failed.message()));
  ErrorInfo ec;
  upstream_->set_option(Tcp::no_delay(true), ec);
  upstream_->non_blocking(true, ec);
  co_return std::nullopt;
}

Awaitable<bool> Session::ask(const Forward& forward, bool upgrade) {
  const std::string head = request_head(forward, request_.method, request_.body.size(), upgrade);
  std::array<asio::const_buffer, 2> buffers{asio::buffer(head), asio::buffer(request_.body)};
  co_return co_await write_to(*upstream_, buffers);
}

/// The next bytes from there, in core_->scratch; empty at their end.
Awaitable<std::string_view> Session::hear() {
  while (!closed()) {
    const auto waited = co_await upstream_->async_wait(Socket::wait_read, kAwait);
    const auto& [wait_ec] = waited;
    if (wait_ec || closed()) break;
    ErrorInfo ec;
    const std::size_t n = upstream_->read_some(asio::buffer(core_->scratch), ec);
    if (would_block(ec)) continue;
    if (ec) break;
    co_return std::string_view(core_->scratch.data(), n);
  }
  co_return std::string_view();
}

bool Session::begin_answer(Carried& carried) {
  const bool may_have_body = carried.status >= 200 && carried.status != 204 && carried.status != 304;
  const auto length = carried.parser->content_length();
  const bool http11 = parser_->is_http11();
  carried.chunked = may_have_body && !length && http11 && request_.method != "HEAD";
  if (may_have_body && !length && !http11) keep_alive_ = false;
  Response response;
  response.status = carried.status;
  response.headers = answer_headers(carried.forward, carried.headers);
  HeadOptions options{.date = core_->date(),
                      .length = {},
                      .chunked = carried.chunked,
                      .close = !keep_alive_,
                      .http10_keep_alive = keep_alive_ && !http11,
                      .always = core_->options.always};
  if (length && may_have_body) options.length = *length;
  head_.clear();
  return write_head(response, options, head_);
}

Awaitable<bool> Session::pass_on(Carried& carried, bool last) {
  const std::string size_line = fmt::format("{:x}\r\n", carried.size);
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(carried.pieces.size() + 3);
  if (!carried.head_sent) buffers.emplace_back(asio::buffer(head_));
  const bool framed = carried.chunked && carried.size > 0;
  if (framed) buffers.emplace_back(asio::buffer(size_line));
  buffers.insert(buffers.end(), carried.pieces.begin(), carried.pieces.end());
  std::string_view tail;
  if (framed) tail = last ? "\r\n0\r\n\r\n" : "\r\n";
  if (carried.chunked && !framed && last) tail = "0\r\n\r\n";
  buffers.emplace_back(tail.data(), tail.size());
  carried.head_sent = true;
  carried.pieces.clear();
  carried.size = 0;
  std::span<asio::const_buffer> left(buffers);
  Written written = write_now(socket_, left);
  if (written == Written::blocked) {
    // The next one to run reads into the same memory.
    const std::string rest = rest_of(left);
    std::array<asio::const_buffer, 1> one{asio::buffer(rest)};
    co_return co_await write_to(socket_, one);
  }
  co_return written == Written::all;
}

Awaitable<Session::Answered> Session::answer(Carried& carried) {
  deadline_->set(kAnswerDeadline);
  watch_peer();
  while (!carried.parser->is_done()) {
    const std::string_view bytes = co_await hear();
    if (closed()) co_return Answered::client_gone;
    if (std::exchange(late_, false)) co_return Answered::late;
    ErrorInfo ec;
    if (bytes.empty()) {
      // Some bodies end with the connection; all others were cut short.
      if (carried.parser->is_header_done() && carried.held.empty()) carried.parser->put_eof(ec);
      if (ec || !carried.parser->is_done()) co_return carried.parser->got_some() ? Answered::broken : Answered::nothing;
    }
    std::string_view left = carried.held.empty() ? bytes : std::string_view(carried.held.append(bytes));
    while (!left.empty() && !carried.parser->is_done()) {
      const std::size_t used = carried.parser->feed(left, ec);
      if (ec) co_return Answered::broken;
      if (used == 0) break;
      left.remove_prefix(used);
      const bool provisional = carried.status >= 100 && carried.status < 200 && carried.status != 101;
      if (carried.parser->is_done() && provisional) carried.restart();
    }
    std::string rest(left);
    // Numbers that no client knows what to do with, and a switch that nobody asked for.
    const bool strange = carried.status < 100 || carried.status > 599 || (carried.status == 101 && !carried.upgrade);
    if (carried.parser->is_header_done() && strange) co_return Answered::broken;
    if (carried.parser->is_header_done() && carried.status != 101) {
      deadline_->clear();
      if (!carried.head_sent && !begin_answer(carried)) co_return Answered::broken;
      if (!co_await pass_on(carried, carried.parser->is_done())) co_return Answered::client_gone;
    }
    (carried.parser->is_done() ? carried.after : carried.held) = std::move(rest);
    if (!carried.parser->is_done() && carried.held.size() > kHeldMost) co_return Answered::broken;
  }
  deadline_->clear();
  co_return Answered::whole;
}

Awaitable<Session::Answered> Session::exchange_with(Carried& carried, Reuse reuse, std::optional<Error>& why) {
  why = co_await reach(carried.forward, reuse);
  if (closed()) co_return Answered::client_gone;
  if (why) co_return Answered::nothing;
  Answered answered = Answered::nothing;
  awaits_answer_ = true;
  if (co_await ask(carried.forward, carried.upgrade)) answered = co_await answer(carried);
  awaits_answer_ = false;
  if (closed()) co_return Answered::client_gone;
  if (answered == Answered::late) why = Error(ErrorCode::deadline_exceeded, "no answer in time");
  if (answered == Answered::nothing || answered == Answered::broken) why = Error(ErrorCode::unavailable, "the connection was lost");
  co_return answered;
}

Awaitable<Session::Next> Session::carry(std::unique_ptr<Forward> forward) {
  // A connection that was kept may have been closed by the other side just now: then nothing was done there.
  const bool repeatable = request_.method == "GET" || request_.method == "HEAD";
  Answered answered = Answered::nothing;
  std::optional<Error> why;
  bool head_sent = false;
  for (int tries = 0; tries < 2; ++tries) {
    Carried carried(*forward, request_.method == "HEAD", false);
    answered = co_await exchange_with(carried, repeatable && tries == 0 ? Reuse::yes : Reuse::no, why);
    head_sent = carried.head_sent;
    if (answered == Answered::whole && carried.parser->keep_alive() && carried.after.empty()) {
      core_->upstreams->keep(Tcp::endpoint(asio::ip::make_address(forward->address), forward->port), std::move(*upstream_));
    }
    if (answered != Answered::nothing || !upstream_is_kept_) break;
  }
  upstream_.reset();
  if (answered == Answered::client_gone || (answered != Answered::whole && head_sent)) co_return Next::end;
  if (answered != Answered::whole) co_return co_await respond(failure(*forward, *why));
  if (keep_alive_) co_return Next::again;
  co_await linger();
  co_return Next::end;
}

Awaitable<Session::Next> Session::tunnel(std::unique_ptr<Forward> forward) {
  Carried carried(*forward, false, true);
  std::optional<Error> why;
  keep_alive_ = false;
  const Answered answered = co_await exchange_with(carried, Reuse::no, why);
  if (answered == Answered::client_gone || (answered != Answered::whole && carried.head_sent)) co_return Next::end;
  if (answered != Answered::whole) co_return co_await respond(failure(*forward, *why));
  if (carried.status != 101) {
    co_await linger();
    co_return Next::end;
  }
  head_ = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  for (const auto& [name, value] : answer_headers(*forward, carried.headers)) add(head_, name, value);
  head_ += "\r\n";
  head_ += carried.after;
  std::array<asio::const_buffer, 1> buffers{asio::buffer(head_)};
  if (!co_await write_to(socket_, buffers)) co_return Next::end;
  forward.reset();
  co_await join(nullptr);
  co_return Next::end;
}

Awaitable<std::optional<Error>> Session::wait_for_listener(const Tunnel& tunnel) {
  ErrorInfo ec;
  const Tcp::endpoint to(asio::ip::make_address(tunnel.address, ec), tunnel.port);
  if (ec) co_return Error(ErrorCode::internal, fmt::format("'{}' is no address", tunnel.address));
  const auto give_up = SteadyClock::now() + tunnel.patience;
  while (true) {
    watch_peer();
    std::optional<Error> why = co_await dial(to);
    if (!why || closed()) co_return std::nullopt;
    if (tunnel.refused) {
      if (auto asked = tunnel.refused(); !asked) co_return std::move(asked).error();
    }
    if (SteadyClock::now() >= give_up) {
      co_return Error(ErrorCode::deadline_exceeded, fmt::format("{} does not answer ({})", tunnel.what, why->message()));
    }
    Timer pause(socket_.get_executor(), kListenLook);
    const auto waited = co_await pause.async_wait(kAwait);
    static_cast<void>(waited);
    if (closed()) co_return std::nullopt;
  }
}

Awaitable<Session::Next> Session::open_tunnel(std::unique_ptr<Tunnel> tunnel) {
  if (!parser_->wants_upgrade_to(tunnel->protocol)) {
    Response refusal =
        problem(Error(ErrorCode::invalid_argument, fmt::format("this path wants an upgrade to '{}'", tunnel->protocol)), 426);
    refusal.headers.emplace_back("Upgrade", tunnel->protocol);
    co_return co_await respond(std::move(refusal));
  }
  awaits_answer_ = true;
  const std::optional<Error> why = co_await wait_for_listener(*tunnel);
  awaits_answer_ = false;
  if (closed()) co_return Next::end;
  if (why) {
    upstream_.reset();
    co_return co_await respond(problem(*why));
  }
  keep_alive_ = false;
  head_ = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
  add(head_, "Upgrade", tunnel->protocol);
  head_ += "\r\n";
  std::array<asio::const_buffer, 1> buffers{asio::buffer(head_)};
  if (!co_await write_to(socket_, buffers)) co_return Next::end;
  std::unique_ptr<ByteFilter> filter = std::move(tunnel->filter);
  tunnel.reset();
  co_await join(std::move(filter));
  co_return Next::end;
}

Awaitable<void> Session::join(std::unique_ptr<ByteFilter> filter) {
  // What the client could not wait with.
  std::string changed;
  if (filter && !filter->pass(input_, changed)) co_return;
  std::array<asio::const_buffer, 1> ahead{asio::buffer(filter ? changed : input_)};
  if (!co_await write_to(*upstream_, ahead)) co_return;
  // It may stay for days, with nothing to say.
  input_ = {};
  changed = {};
  head_ = {};
  request_ = {};
  parser_.reset();
  using namespace asio::experimental::awaitable_operators;
  co_await (pump(*upstream_, socket_, nullptr) && pump(socket_, *upstream_, filter.get()));
}

Awaitable<void> Session::pump(Socket& from, Socket& to, ByteFilter* filter) {
  bool open = true;
  while (open && from.is_open()) {
    const auto waited = co_await from.async_wait(Socket::wait_read, kAwait);
    const auto& [wait_ec] = waited;
    if (wait_ec) break;
    ErrorInfo ec;
    const std::size_t n = from.read_some(asio::buffer(core_->scratch), ec);
    if (would_block(ec)) continue;
    if (ec) break;
    std::string changed;
    if (filter != nullptr && !filter->pass(std::string_view(core_->scratch.data(), n), changed)) {
      shut();
      co_return;
    }
    std::array<asio::const_buffer, 1> one{filter != nullptr ? asio::buffer(changed) : asio::buffer(core_->scratch.data(), n)};
    std::span<asio::const_buffer> left(one);
    const Written written = write_now(to, left);
    open = written != Written::failed;
    if (written == Written::blocked) open = co_await push(rest_of(left), to);
  }
  // What the one side has said is said; the other may have a last word.
  ErrorInfo ignored;
  to.shutdown(Socket::shutdown_send, ignored);
  deadline_->set(kHalfOpen);
}

/// Nothing more is read from the other side until this is gone.
Awaitable<bool> Session::push(std::string bytes, Socket& to) {
  std::array<asio::const_buffer, 1> one{asio::buffer(bytes)};
  std::span<asio::const_buffer> left(one);
  Written written = write_now(to, left);
  while (written == Written::blocked) {
    const auto waited = co_await to.async_wait(Socket::wait_write, kAwait);
    const auto& [ec] = waited;
    if (ec) co_return false;
    written = write_now(to, left);
  }
  co_return written == Written::all;
}

}  // namespace helio::net
