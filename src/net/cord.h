#pragma once
// How an answer that goes on for long is ended by somebody else than its two sides.

#include <functional>
#include <mutex>
#include <utility>

namespace helio::net {

/// Held by an answer, a websocket or a tunnel (Response::cord, WsAccept::cord), and cut by whoever sees a reason to end it: a body then
/// stays without its last chunk and a websocket without a close frame, by which the client knows that it has not got all. What is cut
/// before it has begun does not begin; what is over is not touched. Any thread.
class Cord {
 public:
  /// Whoever calls this holds the cord meanwhile.
  void cut() {
    const std::scoped_lock lock(mutex_);
    cut_ = true;
    if (on_cut_) on_cut_();
  }

  // The server's side.
  /// `on_cut` is called under a lock, so it must only post. False, and it is not called, when the cord is cut already.
  bool tie(std::function<void()> on_cut) {
    const std::scoped_lock lock(mutex_);
    if (!cut_) on_cut_ = std::move(on_cut);
    return !cut_;
  }
  /// From its return on nothing is called any more.
  void untie() {
    const std::scoped_lock lock(mutex_);
    on_cut_ = nullptr;
  }

 private:
  std::mutex mutex_;
  bool cut_ = false;
  std::function<void()> on_cut_;
};

}  // namespace helio::net
