#pragma once
// One reactor thread for sockets, pidfds and timers, and a bounded pool of worker threads for plain synchronous code.

#include "base/executor.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace helio::rt {

/// Owns an io_context and the thread that runs it. Objects that live on the loop are touched on that thread only, and are gone before it.
class EventLoop {
 public:
  EventLoop();
  /// Stops and joins.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void start();
  /// Lets running handlers finish, drops the rest. Idempotent. Not from the loop itself.
  void stop();
  [[nodiscard]] bool on_loop() const;
  /// Between start() and stop().
  [[nodiscard]] bool running() const;
  boost::asio::io_context& context();
  /// Runs `fn` on the loop; dropped when the loop was stopped. Any thread.
  void post(std::move_only_function<void()> fn);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Executor whose tasks run on one thread of their own, in order: controllers live here, and may block in the store. Timers run on
/// CLOCK_BOOTTIME: one that fell due while the machine was suspended fires on resume.
class SerialExecutor final : public Executor {
 public:
  explicit SerialExecutor(const char* thread_name);
  ~SerialExecutor() override;
  void post(Task task) override;
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId timer) override;
  /// Runs what is due, then joins. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Fixed number of threads, bounded queue.
class WorkerPool {
 public:
  WorkerPool(std::size_t threads, std::size_t queue_limit, const char* thread_name);
  ~WorkerPool();
  /// False when the queue is full: the caller answers `unavailable`. Any thread.
  bool try_post(std::move_only_function<void()> fn);
  /// Lets running functions finish, drops queued ones, joins. Idempotent. Not from a worker.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helio::rt
