#pragma once
// A driver in somebody else's cluster runs on a leash: it tells its submitter that it runs, and is killed when that ends, whatever ends it.
// So nothing of an attempt outlives its node, as elsewhere.

#include "base/error.h"
#include "proc/files.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace helio::agent {

/// The submitter's end: a socket that the driver holds on to.
class Leash {
 public:
  /// Listens in `folder`, and puts a name of this program there that drivers are started by. `on_change` is told, on a thread of its own,
  /// whether a driver holds on. Errors by system_error().
  static Result<std::unique_ptr<Leash>> hold(const std::string& folder, std::function<void(bool held)> on_change);
  ~Leash();
  Leash(const Leash&) = delete;
  Leash& operator=(const Leash&) = delete;

  /// The driver is killed; on_change(false) follows. Any thread.
  void cut();
  /// The shell line that runs `line` on this leash. It stands in Ray's records and at the head of the driver's log.
  [[nodiscard]] std::string wrap(const std::string& line) const;

 private:
  Leash(std::string program, proc::Fd listener, proc::Fd wake, std::function<void(bool)> on_change);
  void run();

  const std::string program_;
  const proc::Fd listener_;
  const proc::Fd wake_;  ///< eventfd: look at cut_ and stop_
  const std::function<void(bool)> on_change_;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// This program was started by the name that a leash has put into its folder.
bool is_on_leash(const std::string& argv0);
/// The driver's end, as a program of its own: runs `line` in a shell and ends as that ends. Without a submitter there nothing is run. Gives
/// the exit code.
int run_on_leash(const std::string& argv0, const std::string& line);

}  // namespace helio::agent
