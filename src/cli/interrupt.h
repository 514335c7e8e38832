#pragma once
// Ctrl-C while following a job, without a handler: the signals are blocked and read from a descriptor.

#include "base/clock.h"
#include "cli/local_file.h"

namespace helio::cli {

/// Lets another thread end Interrupt::wait().
class Wakeup {
 public:
  Wakeup();
  void signal() const;
  void drain() const;
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

enum class Choice { stop, detach, go_on };

/// Blocks SIGINT and SIGTERM in this thread and in those that it starts afterwards.
class Interrupt {
 public:
  Interrupt();
  /// True when a signal came, false for a wakeup or after `at_most`.
  bool wait(const Wakeup& wakeup, Duration at_most);
  /// Asks on the terminal; `stop` when there is none (a script's SIGINT or SIGTERM means stop), `detach` on a second signal.
  Choice ask(const char* question);

 private:
  UniqueFd signals_;
};

}  // namespace helio::cli
