#include "link/strand.h"

#include <utility>

namespace helio::link {
namespace {
/// Tasks of one strand before the thread is offered to others.
constexpr int kTurn = 16;
}  // namespace

void Strand::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (running_) return;
    running_ = true;
  }
  schedule();
}

void Strand::schedule() {
  if (pool_.try_post([self = shared_from_this()] { self->drain(); })) return;
  // The queue of the pool is larger than the number of strands, so this is a pool that has stopped.
  std::deque<Task> dropped;
  const std::scoped_lock lock(mutex_);
  dropped.swap(tasks_);
  running_ = false;
}

void Strand::drain() {
  for (int i = 0; i < kTurn; ++i) {
    Task task;
    {
      const std::scoped_lock lock(mutex_);
      if (tasks_.empty()) {
        running_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
  schedule();
}

}  // namespace helio::link
