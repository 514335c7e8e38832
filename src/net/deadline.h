#pragma once
#include "net/asio_types.h"

#include "base/clock.h"

#include <functional>
#include <memory>
#include <utility>

namespace helio::net {

/// One deadline that moves often and passes rarely: moving it later costs no timer operation. Loop thread.
class Deadline : public std::enable_shared_from_this<Deadline> {
 public:
  Deadline(Executor executor, std::function<void()> on_passed) : timer_(executor), on_passed_(std::move(on_passed)) {}

  void set(Duration from_now) {
    due_ = SteadyClock::now() + from_now;
    if (!armed_ || due_ < armed_for_) arm();
  }
  void clear() { due_ = SteadyClock::time_point::max(); }
  /// For good; lets go of the callback.
  void end() {
    clear();
    on_passed_ = nullptr;
    timer_.cancel();
  }

 private:
  void arm() {
    armed_ = true;
    armed_for_ = due_;
    timer_.expires_at(due_);
    timer_.async_wait([self = shared_from_this()](const ErrorInfo& ec) {
      if (!ec) self->fired();
    });
  }
  void fired() {
    armed_ = false;
    if (due_ == SteadyClock::time_point::max()) return;
    if (due_ > SteadyClock::now()) return arm();
    clear();
    if (on_passed_) on_passed_();
  }

  Timer timer_;
  std::function<void()> on_passed_;
  SteadyClock::time_point due_ = SteadyClock::time_point::max();
  SteadyClock::time_point armed_for_;
  bool armed_ = false;
};

}  // namespace helio::net
