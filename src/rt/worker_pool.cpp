#include "rt/event_loop.h"
#include "rt/thread_root.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace helio::rt {

struct WorkerPool::Impl {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::move_only_function<void()>> queue;
  std::size_t limit = 0;
  std::size_t idle = 0;
  bool stopping = false;
  std::vector<std::thread> threads;

  void run(const std::string& name) {
    name_thread(name);
    std::unique_lock lock(mutex);
    while (true) {
      ++idle;
      wake.wait(lock, [this] { return stopping || !queue.empty(); });
      --idle;
      if (stopping) return;
      auto task = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      guarded(task);
      task = nullptr;  // its captures end outside of the lock
      lock.lock();
    }
  }
};

WorkerPool::WorkerPool(std::size_t threads, std::size_t queue_limit, const char* thread_name) : impl_(std::make_unique<Impl>()) {
  impl_->limit = queue_limit;
  impl_->threads.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get(), name = std::string(thread_name)] { impl->run(name); });
  }
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::try_post(std::move_only_function<void()> fn) {
  bool notify = false;
  {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->stopping || impl_->queue.size() >= impl_->limit) return false;
    impl_->queue.push_back(std::move(fn));
    notify = impl_->idle > 0;
  }
  // Busy workers look at the queue by themselves: no system call for them.
  if (notify) impl_->wake.notify_one();
  return true;
}

void WorkerPool::stop() {
  std::deque<std::move_only_function<void()>> dropped;
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->stopping = true;
    dropped.swap(impl_->queue);
  }
  impl_->wake.notify_all();
  dropped.clear();  // whoever waits for them need not wait for those that run
  for (auto& thread : impl_->threads) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace helio::rt
