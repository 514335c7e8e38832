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

/// A place in the pool's queue. A pool that stops forgets its queue: the tasks then go too, for they may own whoever owns the strand.
class Strand::Turn {
 public:
  explicit Turn(std::shared_ptr<Strand> strand) : strand_(std::move(strand)) {}
  Turn(Turn&&) = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (strand_) strand_->drop();
  }
  void operator()() { std::exchange(strand_, nullptr)->drain(); }

 private:
  std::shared_ptr<Strand> strand_;
};

void Strand::schedule() {
  // The queue of the pool is larger than the number of strands: it refuses only when it has stopped, and then the turn drops the tasks.
  static_cast<void>(pool_.try_post(Turn(shared_from_this())));
}

void Strand::drop() {
  std::deque<Task> dropped;
  {
    const std::scoped_lock lock(mutex_);
    dropped.swap(tasks_);
    running_ = false;
  }
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
