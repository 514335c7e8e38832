#pragma once
// Gives the shipper its thread, and tells it when to look: by inotify while a node is quiet, by short looks while files grow.

#include "agent/daemon_link.h"
#include "agent/log_shipper.h"
#include "proc/file_watch.h"
#include "rt/event_loop.h"

#include <functional>
#include <memory>
#include <vector>

namespace helio::agent {

/// Called on the pump's thread.
struct PumpEvents {
  std::function<void()> first_line;
  std::function<void(bool)> shipped;
  std::function<void()> caught_up;  ///< after catch_up(), once
};

/// Methods without a comment may be called on any thread.
class LogPump {
 public:
  LogPump(rt::EventLoop& loop, ShipperOptions options, ShipperOut out, PumpEvents events);
  ~LogPump();

  /// A session folder will appear: look for it.
  void expect_session();
  void connected();
  void disconnected();
  void resume(const model::StreamInfo& info);
  void acknowledge(std::vector<StreamAck> acks);
  /// A file outside of the session has grown.
  void look();
  /// Reads what is there now, and says when all of it is shipped.
  void catch_up();
  /// No more will be written.
  void finish();

 private:
  void tick();
  void arm();
  void disarm();
  void schedule(Duration after);
  void report();

  rt::EventLoop& loop_;
  PumpEvents events_;
  LogShipper shipper_;
  std::unique_ptr<proc::FileWatch> watch_;
  std::vector<proc::FileWatch::WatchId> watches_;
  bool armed_ = false;
  bool expecting_ = false;
  bool said_first_line_ = false;
  bool said_shipped_ = false;
  bool said_caught_up_ = false;
  int quiet_ = 0;
  Executor::TimerId timer_ = 0;
  rt::SerialExecutor executor_{"helio-logs"};  // last: its tasks use all of the above
};

}  // namespace helio::agent
