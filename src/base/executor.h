#pragma once
// Where work runs is injected: rt/ runs it on threads, sim/ on virtual time in one thread.

#include "base/clock.h"

#include <cstdint>
#include <functional>

namespace helio {

/// Runs functions one after the other, never two at once, in the order posted (timers: by due time, ties by order of creation).
class Executor {
 public:
  using Task = std::move_only_function<void()>;
  using TimerId = std::uint64_t;

  virtual ~Executor() = default;
  /// Any thread.
  virtual void post(Task task) = 0;
  /// Runs `task` once after `delay` of monotonic time. Any thread.
  virtual TimerId after(Duration delay, Task task) = 0;
  /// Forgets a timer that has not fired; anything else is a no-op. From a task of this executor: it will not fire any more.
  virtual void cancel(TimerId timer) = 0;
};

}  // namespace helio
