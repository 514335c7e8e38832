#pragma once
// Runs commands in the node for `helio exec`: the node's environment, output sent as it comes.

#include "agent/daemon_link.h"

#include <memory>
#include <string>
#include <vector>

namespace helio::agent {

struct ExecOptions {
  std::vector<std::string> env;  ///< "K=V", complete
  std::string cwd;
};

/// What a command needs of its connection. Any thread.
struct ExecOut {
  /// False: not taken; it comes again after drained(), unless the command is ended first.
  std::function<bool(const std::string& id, std::string_view bytes)> output;
  std::function<void(const std::string& id, std::optional<int> exit_code, const std::string& error)> done;
};

class Execs {
 public:
  Execs(rt::EventLoop& loop, ExecOut out);
  /// Kills what runs and waits for it.
  ~Execs();
  /// Starts the command on a thread of its own; at most 16 at a time. Any thread, as all of these.
  void run(ExecRequest request, ExecOptions options);
  /// Nobody wants to know any more: kills what runs under this id, or all that runs (the connection is lost).
  void cancel(const std::string& id);
  void cancel_all();
  /// The connection takes output again.
  void drained();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace helio::agent
