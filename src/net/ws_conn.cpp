#include "net/ws_conn.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <utility>

namespace helio::net {

namespace websocket = boost::beast::websocket;

namespace {
constexpr std::size_t kReadReserve = 64U << 10U;  // Beast sizes a read by the buffer's capacity
constexpr std::size_t kKeepBuffer = 256U << 10U;
constexpr Duration kCloseGrace = 2s;

/// Hears of the end of the io_context, which an EventLoop that is stopped with open sessions brings about.
class RegistryService final : public asio::execution_context::service {
 public:
  using key_type = RegistryService;
  static inline asio::execution_context::id id;

  explicit RegistryService(asio::execution_context& context) : service(context) {}
  [[nodiscard]] const std::shared_ptr<WsRegistry>& registry() const { return registry_; }

 private:
  void shutdown() override {
    const std::scoped_lock lock(registry_->mutex);
    for (WsConn* conn : registry_->open) conn->abandon();
    registry_->open.clear();
  }

  std::shared_ptr<WsRegistry> registry_ = std::make_shared<WsRegistry>();
};

}  // namespace

WsConn::WsConn(rt::EventLoop& loop, Socket socket, std::string peer, Limits limits)
    : loop_(loop),
      registry_(asio::use_service<RegistryService>(loop.context()).registry()),
      stream_(std::move(socket)),
      peer_(std::move(peer)),
      limits_(limits),
      cut_off_(stream_->get_executor()) {
  {
    const std::scoped_lock lock(registry_->mutex);
    registry_->open.insert(this);
  }
  websocket::stream_base::timeout timeout{};
  timeout.handshake_timeout = std::chrono::seconds(10);
  timeout.idle_timeout = std::chrono::seconds(30);
  timeout.keep_alive_pings = true;
  stream_->set_option(timeout);
  stream_->read_message_max(limits_.message);
  stream_->auto_fragment(false);
  stream_->write_buffer_bytes(16U << 10U);  // a client masks through it
}

WsConn::~WsConn() {
  const std::scoped_lock lock(registry_->mutex);
  registry_->open.erase(this);
}

void WsConn::abandon() {
  const std::scoped_lock lock(mutex_);
  abandoned_ = true;
  closing_ = true;
  stream_.reset();
  cut_off_.reset();
}

void WsConn::hold(std::shared_ptr<Cord> cord) {
  cord_ = std::move(cord);
  const bool whole = cord_->tie([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cut();
  });
  if (!whole) cut();
}

void WsConn::end_use() {
  --uses_;
  if (uses_ > 0 || state_ != State::finished) return;
  stream_.reset();
  cut_off_.reset();
}

bool WsConn::send_text(std::string frame) { return enqueue({.text = true, .bytes = std::move(frame)}); }
bool WsConn::send_binary(std::string frame) { return enqueue({.text = false, .bytes = std::move(frame)}); }

bool WsConn::enqueue(Frame frame) {
  const std::scoped_lock lock(mutex_);
  const std::size_t cost = frame.bytes.size() + kFrameCost;
  if (closing_ || (cost_ != 0 && cost_ + cost > limits_.queue)) return false;
  cost_ += cost;
  if ((queued_ += frame.bytes.size()) > limits_.drained_above) was_high_ = true;
  queue_.push_back(std::move(frame));
  // Under the lock: abandon() must not come in between.
  if (!std::exchange(pump_scheduled_, true)) {
    loop_.post([self = shared_from_this()] { self->write_next(); });
  }
  return true;
}

void WsConn::write_next() {
  if (write_running_ || close_sent_ || state_ == State::connecting || state_ == State::finished) return;
  {
    const std::scoped_lock lock(mutex_);
    if (queue_.empty()) {
      pump_scheduled_ = false;
    } else {
      current_ = std::move(queue_.front());
      queue_.pop_front();
      write_running_ = true;
    }
  }
  if (!write_running_) {
    if (state_ == State::closing) begin_close();
    return;
  }
  stream_->text(current_.text);
  begin_use();
  stream_->async_write(asio::buffer(current_.bytes), [self = shared_from_this()](const ErrorInfo& ec, std::size_t) {
    self->wrote(ec);
    self->end_use();
  });
}

void WsConn::wrote(const ErrorInfo& ec) {
  write_running_ = false;
  bool drained = false;
  {
    const std::scoped_lock lock(mutex_);
    cost_ -= current_.bytes.size() + kFrameCost;
    drained = (queued_ -= current_.bytes.size()) == 0 && std::exchange(was_high_, false);
  }
  current_.bytes = {};
  if (state_ == State::finished) return;
  // The read fails too and says why; but a peer that has stopped talking may leave it waiting.
  if (ec) return cut_after(0s);
  if (drained && state_ == State::open && handlers_.on_drained) handlers_.on_drained();
  write_next();
}

void WsConn::set_handlers(WsHandlers handlers) {
  if (state_ != State::finished) {
    handlers_ = std::move(handlers);
  } else if (handlers.on_close) {
    handlers.on_close(Error(ErrorCode::cancelled, "closed before it was open"));
  }
}

void WsConn::opened() {
  if (state_ != State::connecting) return;
  state_ = close_wanted_ ? State::closing : State::open;  // edge 1, with edge 2 when close() came before
  input_.reserve(kReadReserve);
  read_next();
  write_next();
}

void WsConn::read_next() {
  begin_use();
  stream_->async_read(input_, [self = shared_from_this()](const ErrorInfo& ec, std::size_t) {
    self->got(ec);
    self->end_use();
  });
}

void WsConn::got(const ErrorInfo& ec) {
  if (state_ == State::finished) return;
  if (ec) return finish(why_ended(ec));
  if (state_ == State::open) {
    const auto data = input_.cdata();
    const std::string_view frame(static_cast<const char*>(data.data()), data.size());
    const auto& handler = stream_->got_text() ? handlers_.on_text : handlers_.on_binary;
    if (handler) handler(frame);
    if (state_ == State::finished) return;
  }
  input_.consume(input_.size());
  if (input_.capacity() > kKeepBuffer) {
    input_.shrink_to_fit();
    input_.reserve(kReadReserve);
  }
  read_next();
}

Error WsConn::why_ended(const ErrorInfo& ec) const {
  if (closing_) return Error(ErrorCode::cancelled, "closed by this side");
  if (ec == websocket::error::closed) {
    const auto& reason = stream_->reason();
    return Error(ErrorCode::unavailable, fmt::format("closed by the peer: {} {}", reason.code, std::string_view(reason.reason)))
        .with("close_code", std::to_string(reason.code));
  }
  if (ec == boost::beast::error::timeout) return Error(ErrorCode::deadline_exceeded, "the peer has gone silent");
  if (ec == websocket::error::message_too_big || ec == websocket::error::buffer_overflow) {
    return Error(ErrorCode::resource_exhausted, fmt::format("the peer sent a message of more than {} bytes", limits_.message));
  }
  if (ec == websocket::condition::protocol_violation) {
    return Error(ErrorCode::invalid_argument, "the peer broke the websocket protocol: " + ec.message());
  }
  return Error(ErrorCode::unavailable, "connection lost: " + ec.message());
}

void WsConn::close(int code, std::string reason) { close_within(code, std::move(reason), kCloseGrace); }

void WsConn::cut() {
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  if (abandoned_) return;
  loop_.post([self = shared_from_this()] { self->finish(Error(ErrorCode::cancelled, "cut by this side")); });
}

void WsConn::close_within(int code, std::string reason, Duration grace) {
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  if (abandoned_) return;
  loop_.post([self = shared_from_this(), code, reason = std::move(reason), grace] {
    if (self->state_ == State::finished) return;
    if (!std::exchange(self->close_wanted_, true)) {
      if (self->state_ == State::open) self->state_ = State::closing;  // edge 2
      self->close_reason_.code = static_cast<websocket::close_code>(code);
      self->close_reason_.reason.assign(reason.data(), std::min<std::size_t>(reason.size(), 120));
    }
    self->cut_after(grace);
    self->write_next();
  });
}

void WsConn::begin_close() {
  close_sent_ = true;
  // What comes of it is seen by the outstanding read.
  begin_use();
  stream_->async_close(close_reason_, [self = shared_from_this()](const ErrorInfo&) {
    self->finish(Error(ErrorCode::cancelled, "closed by this side"));  // edge 3
    self->end_use();
  });
}

void WsConn::cut_after(Duration grace) {
  cut_off_->expires_after(grace);
  cut_off_->async_wait([self = shared_from_this()](const ErrorInfo& ec) {
    if (!ec && self->state_ != State::finished) {
      self->finish(self->closing_ ? Error(ErrorCode::cancelled, "closed by this side") : Error(ErrorCode::unavailable, "connection lost"));
    }
  });
}

void WsConn::finish(const Error& why) {
  if (std::exchange(state_, State::finished) == State::finished) return;
  begin_use();
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    queue_.clear();
    queued_ = current_.bytes.size();
  }
  cut_off_->cancel();
  cord_.reset();
  ErrorInfo ignored;
  stream_->next_layer().close(ignored);
  // Handlers often own the session: let go of them, but not while one of them runs.
  const WsHandlers handlers = std::exchange(handlers_, {});
  if (handlers.on_close) handlers.on_close(why);
  if (const auto on_gone = std::exchange(on_gone_, nullptr)) on_gone();
  end_use();
}

}  // namespace helio::net
