#pragma once
// Time that passes only when there is nothing left to do: executor and clock of a simulation. Single thread, deterministic.

#include "base/clock.h"
#include "base/executor.h"

#include <map>
#include <utility>

namespace helio::provider {

class VirtualTime final : public Executor, public Clock {
 public:
  void post(Task task) override { after(Duration(0), std::move(task)); }
  TimerId after(Duration delay, Task task) override {
    const MonoTime due = mono_ + std::max(delay, Duration(0));
    const TimerId id = ++last_;
    tasks_.emplace(std::pair(due, id), std::move(task));
    due_.emplace(id, due);
    return id;
  }
  void cancel(TimerId timer) override {
    const auto found = due_.find(timer);
    if (found == due_.end()) return;
    tasks_.erase({found->second, timer});
    due_.erase(found);
  }

  [[nodiscard]] Timestamp now() const override { return {wall_offset_ + mono_.us}; }
  [[nodiscard]] MonoTime mono() const override { return mono_; }
  /// A step of the wall clock alone.
  void jump_wall(Duration by) { wall_offset_ += by.count(); }

  /// Runs the next task, letting time pass until it is due. False when there is none before `limit`; then it is `limit`.
  bool run_one(MonoTime limit) {
    if (tasks_.empty() || tasks_.begin()->first.first > limit) {
      mono_ = std::max(mono_, limit);
      return false;
    }
    auto first = tasks_.extract(tasks_.begin());
    due_.erase(first.key().second);
    mono_ = std::max(mono_, first.key().first);
    first.mapped()();
    return true;
  }

 private:
  std::map<std::pair<MonoTime, TimerId>, Task> tasks_;
  std::map<TimerId, MonoTime> due_;
  TimerId last_ = 0;
  MonoTime mono_{1'000'000};
  std::int64_t wall_offset_ = 1'700'000'000'000'000;
};

}  // namespace helio::provider
