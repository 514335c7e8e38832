#pragma once
#include "daemon/options.h"

#include <functional>
#include <memory>
#include <string>

namespace helio::daemon {

/// Everything that runs in heliostatd, made in one place. A constructed Daemon has the data folder's lock and listens.
class Daemon {
 public:
  /// `request_stop` is called, from any thread and perhaps more than once, when a client asked for the end or another daemon has taken
  /// over. Errors: conflict (another daemon runs on this folder), invalid_argument (config.yaml), precondition_failed (an address that
  /// needs TLS), those of the store, the network and the file system.
  static Result<std::unique_ptr<Daemon>> start(const Options& options, std::function<void()> request_stop);
  /// stop().
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] const std::string& url() const;
  /// Writes daemon.json again when somebody took or changed it, and warns in the log. Error: conflict when the lock is gone or replaced,
  /// so that another daemon could start on this folder, or on a new one at its path: this one has to end.
  Result<void> look_after_files();
  /// The listener first, then connections and controllers; nodes are left alone. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helio::daemon
