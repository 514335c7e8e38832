#pragma once
#include "model/home.h"
#include "proc/files.h"

namespace helio::daemon {

/// Tells when somebody touched the files by which this daemon is found and kept alone: lock and daemon.json. By inotify where there is
/// some, and every minute. One thread.
class HomeWatch {
 public:
  explicit HomeWatch(const model::Home& home);
  /// Returns when `other` can be read, or when it is time to look at the files.
  void wait(int other);

 private:
  /// Whether what has happened concerns us.
  bool drain();
  proc::Fd inotify_;
};

}  // namespace helio::daemon
