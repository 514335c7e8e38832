#pragma once
#include "base/clock.h"
#include "base/error.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace helio::net {

/// One open websocket. Handlers run on the event loop, one at a time, and must not block. Pings keep it alive; a peer that is silent for
/// 30 s is dropped (on_close: deadline_exceeded). It lives until it is closed, whether or not anyone holds it, and may be held
/// for longer than its loop. Never compressed.
class WsSession {
 public:
  virtual ~WsSession() = default;
  /// Queues a frame. Any thread. False when the queue holds more than its bound (8 MiB) or the socket is closing: the frame is dropped.
  virtual bool send_text(std::string frame) = 0;
  virtual bool send_binary(std::string frame) = 0;
  /// Bytes queued and not yet written. Any thread.
  [[nodiscard]] virtual std::size_t queued() const = 0;
  /// What is queued, a close frame, then the socket; a peer that does not follow is cut off after 2 s. Any thread, idempotent.
  virtual void close(int code, std::string reason) = 0;
  /// Drops the connection without a close frame, with all that is queued: the peer sees that it was not meant to end. Any thread.
  virtual void cut() = 0;
  [[nodiscard]] virtual const std::string& peer() const = 0;
};

struct WsHandlers {
  std::function<void(std::string_view frame)> on_text;
  std::function<void(std::string_view frame)> on_binary;
  /// Called when queued() fell to zero after send_* had filled it over 1 MiB: go on sending.
  std::function<void()> on_drained;
  /// Last call; the error says why (cancelled: we closed).
  std::function<void(const Error& why)> on_close;
};

}  // namespace helio::net
