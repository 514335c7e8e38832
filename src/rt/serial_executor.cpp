#include "base/check.h"
#include "rt/event_loop.h"
#include "rt/thread_root.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

namespace helio::rt {
namespace {

// A condition variable cannot wait on CLOCK_BOOTTIME, a timerfd can.
class Sleeper {
 public:
  Sleeper() : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    HELIO_CHECK(timer_ >= 0 && event_ >= 0, "no descriptor for an executor");
  }
  ~Sleeper() {
    ::close(timer_);
    ::close(event_);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(event_, &one, sizeof one);  // fails only when a wake is pending already
  }

  /// Until wake() or `until` (0: wake() alone).
  void sleep(std::int64_t until_us) {
    if (until_us != armed_us_) {
      itimerspec spec{};
      spec.it_value.tv_sec = until_us / 1'000'000;
      spec.it_value.tv_nsec = until_us % 1'000'000 * 1'000;
      ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
      armed_us_ = until_us;
    }
    std::array<pollfd, 2> fds{pollfd{timer_, POLLIN, 0}, pollfd{event_, POLLIN, 0}};
    while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
    }
    std::uint64_t count = 0;
    if (fds[1].revents != 0) [[maybe_unused]]
      const ssize_t n = ::read(event_, &count, sizeof count);
    if (fds[0].revents != 0) {
      [[maybe_unused]] const ssize_t n = ::read(timer_, &count, sizeof count);
      armed_us_ = 0;
    }
  }

 private:
  int timer_;
  int event_;
  std::int64_t armed_us_ = 0;
};

}  // namespace

struct SerialExecutor::Impl {
  // A posted task is a timer that is due now, so one ordered map holds the order that the interface promises.
  using Key = std::pair<std::int64_t, TimerId>;
  std::mutex mutex;
  std::map<Key, Task> tasks;
  std::unordered_map<TimerId, std::int64_t> due_of;  // of timers that can still be cancelled
  TimerId last_id = 0;
  bool sleeping = false;
  bool stopping = false;
  Sleeper sleeper;
  std::thread thread;

  static std::int64_t now_us() { return SystemClock::instance().mono().us; }

  TimerId add(std::int64_t due, Task task, bool cancellable) {
    bool wake = false;
    TimerId id = 0;
    {
      const std::scoped_lock lock(mutex);
      if (stopping) return 0;
      id = ++last_id;
      wake = sleeping && (tasks.empty() || due < tasks.begin()->first.first);
      if (wake) sleeping = false;
      tasks.emplace(Key(due, id), std::move(task));
      if (cancellable) due_of.emplace(id, due);
    }
    if (wake) sleeper.wake();
    return id;
  }

  /// The next task when it is due by `now`.
  std::map<Key, Task>::node_type take(std::int64_t now) {
    if (tasks.empty() || tasks.begin()->first.first > now) return {};
    auto node = tasks.extract(tasks.begin());
    due_of.erase(node.key().second);
    return node;
  }

  void run(const std::string& name) {
    name_thread(name);
    std::unique_lock lock(mutex);
    std::int64_t stop_at = 0;
    while (true) {
      if (stopping && stop_at == 0) stop_at = now_us();
      if (auto node = take(stop_at != 0 ? stop_at : now_us()); node) {
        lock.unlock();
        guarded(node.mapped());
        node = {};  // captures end outside of the lock
        lock.lock();
        continue;
      }
      if (stopping) return;
      sleeping = true;
      const std::int64_t until = tasks.empty() ? 0 : tasks.begin()->first.first;
      lock.unlock();
      sleeper.sleep(until);
      lock.lock();
      sleeping = false;
    }
  }
};

SerialExecutor::SerialExecutor(const char* thread_name) : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([impl = impl_.get(), name = std::string(thread_name)] { impl->run(name); });
}

SerialExecutor::~SerialExecutor() { stop(); }

void SerialExecutor::post(Task task) { impl_->add(Impl::now_us(), std::move(task), false); }

SerialExecutor::TimerId SerialExecutor::after(Duration delay, Task task) {
  return impl_->add(Impl::now_us() + std::max<std::int64_t>(delay.count(), 0), std::move(task), true);
}

void SerialExecutor::cancel(TimerId timer) {
  std::map<Impl::Key, Task>::node_type dropped;
  const std::scoped_lock lock(impl_->mutex);
  const auto found = impl_->due_of.find(timer);
  if (found == impl_->due_of.end()) return;
  dropped = impl_->tasks.extract(Impl::Key(found->second, timer));
  impl_->due_of.erase(found);
}

void SerialExecutor::stop() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->sleeper.wake();
  if (impl_->thread.joinable()) {
    HELIO_CHECK(impl_->thread.get_id() != std::this_thread::get_id(), "executor stopped from one of its tasks");
    impl_->thread.join();
  }
}

}  // namespace helio::rt
