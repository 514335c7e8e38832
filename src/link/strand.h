#pragma once
#include "rt/event_loop.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace helio::link {

/// Runs functions one after the other, in the order posted, on threads of a shared pool: order without a thread of its own.
class Strand : public std::enable_shared_from_this<Strand> {
 public:
  using Task = std::move_only_function<void()>;

  explicit Strand(rt::WorkerPool& pool) : pool_(pool) {}
  /// Any thread. After the pool has stopped the task is dropped.
  void post(Task task);

 private:
  class Turn;
  void schedule();
  void drain();
  void drop();

  rt::WorkerPool& pool_;
  std::mutex mutex_;
  std::deque<Task> tasks_;
  bool running_ = false;
};

}  // namespace helio::link
