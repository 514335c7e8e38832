#include "rt/event_loop.h"

#include "base/check.h"
#include "rt/thread_root.h"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

namespace helio::rt {

struct EventLoop::Impl {
  boost::asio::io_context context{1};
  std::atomic<std::thread::id> loop_thread{};
  std::atomic<bool> stopped{false};
  std::thread thread;
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() { stop(); }

void EventLoop::start() {
  HELIO_CHECK(!impl_->thread.joinable(), "event loop started twice");
  impl_->thread = std::thread([impl = impl_.get()] {
    name_thread("helio-loop");
    impl->loop_thread = std::this_thread::get_id();
    const auto work = boost::asio::make_work_guard(impl->context);
    // A handler that throws is a defect of its own; the loop goes on for the others.
    while (!impl->context.stopped()) guarded([impl] { impl->context.run(); });
  });
}

void EventLoop::stop() {
  impl_->stopped = true;
  impl_->context.stop();
  if (impl_->thread.joinable()) {
    HELIO_CHECK(!on_loop(), "event loop stopped from itself");
    impl_->thread.join();
  }
}

bool EventLoop::on_loop() const { return impl_->loop_thread.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

bool EventLoop::running() const { return impl_->thread.joinable() && !impl_->stopped; }

boost::asio::io_context& EventLoop::context() { return impl_->context; }

void EventLoop::post(std::move_only_function<void()> fn) {
  if (impl_->stopped.load(std::memory_order_relaxed)) return;
  boost::asio::post(impl_->context, std::move(fn));
}

}  // namespace helio::rt
