#pragma once
// A websocket over an open socket: what server and client have in common.
//
//   connecting --(1) opened()--> open --(2) close()--> closing --(3)--> finished
//        `------------------(4) handshake failed, read failed, cut off -----^
//
// In `open` one read is always outstanding, and at most one write. Its failure is the one place that ends the session.
// Users may hold a session for longer than the loop lives: its Asio objects go when it has finished, or with the io_context.

#include "net/asio_types.h"
#include "net/cord.h"
#include "net/websocket.h"
#include "rt/event_loop.h"

#include <atomic>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace helio::net {

class WsConn;

/// The sessions of one io_context that have not finished.
struct WsRegistry {
  std::mutex mutex;
  std::set<WsConn*> open;
};

class WsConn final : public WsSession, public std::enable_shared_from_this<WsConn> {
 public:
  using Stream = boost::beast::websocket::stream<Socket, false>;
  struct Limits {
    std::size_t message = 1U << 20U;        ///< incoming
    std::size_t queue = 8U << 20U;          ///< outgoing, with 64 bytes for each frame
    std::size_t drained_above = 1U << 20U;  ///< on_drained only after the queue was this full
  };

  WsConn(rt::EventLoop& loop, Socket socket, std::string peer, Limits limits);
  ~WsConn() override;
  WsConn(const WsConn&) = delete;
  WsConn& operator=(const WsConn&) = delete;

  bool send_text(std::string frame) override;
  bool send_binary(std::string frame) override;
  [[nodiscard]] std::size_t queued() const override { return queued_.load(std::memory_order_relaxed); }
  void close(int code, std::string reason) override;
  void cut() override;
  [[nodiscard]] const std::string& peer() const override { return peer_; }

  // Loop thread from here on.
  /// Between begin_use() and end_use(), whatever happens to the session.
  Stream& stream() { return *stream_; }
  void begin_use() { ++uses_; }
  void end_use();
  /// A server that stops cuts it instead of closing it.
  void set_cut_on_stop() { cut_on_stop_ = true; }
  [[nodiscard]] bool cut_on_stop() const { return cut_on_stop_; }
  /// Cutting the cord cuts the session.
  void hold(std::shared_ptr<Cord> cord);
  /// Called after on_close.
  void set_on_gone(std::function<void()> on_gone) { on_gone_ = std::move(on_gone); }
  [[nodiscard]] bool finished() const { return state_ == State::finished; }
  /// Any thread.
  [[nodiscard]] bool closing() const { return closing_.load(); }
  void set_handlers(WsHandlers handlers);
  /// Edge 1: the handshake is done. Reads, and sends what was queued.
  void opened();
  /// Edge 4, or the second half of 3: closes the socket and calls on_close once.
  void finish(const Error& why);
  /// Close frame, but the socket is cut after `grace` at the latest. Any thread.
  void close_within(int code, std::string reason, Duration grace);
  /// The io_context ends: nothing may be posted any more.
  void abandon();

 private:
  enum class State { connecting, open, closing, finished };
  struct Frame {
    bool text = false;
    std::string bytes;
  };
  static constexpr std::size_t kFrameCost = 64;

  bool enqueue(Frame frame);
  void write_next();
  void wrote(const ErrorInfo& ec);
  void read_next();
  void got(const ErrorInfo& ec);
  void begin_close();
  void cut_after(Duration grace);
  Error why_ended(const ErrorInfo& ec) const;

  rt::EventLoop& loop_;  // good until abandoned_
  std::shared_ptr<WsRegistry> registry_;
  std::optional<Stream> stream_;
  int uses_ = 0;
  std::string peer_;
  Limits limits_;
  WsHandlers handlers_;
  std::function<void()> on_gone_;
  boost::beast::flat_buffer input_;
  std::optional<Timer> cut_off_;
  State state_ = State::connecting;
  bool write_running_ = false;
  bool close_wanted_ = false;
  bool close_sent_ = false;
  bool cut_on_stop_ = false;
  std::shared_ptr<Cord> cord_;  // until it has finished
  boost::beast::websocket::close_reason close_reason_;
  Frame current_;

  std::mutex mutex_;  // of what follows
  std::deque<Frame> queue_;
  std::size_t cost_ = 0;
  bool pump_scheduled_ = false;
  bool was_high_ = false;
  bool abandoned_ = false;
  std::atomic<std::size_t> queued_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace helio::net
