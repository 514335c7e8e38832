#pragma once
// Runs commands in the node for `helio exec`: the node's environment, output sent as it comes.

#include "agent/daemon_link.h"

#include <atomic>
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
  std::function<bool(const std::string& id, std::string_view bytes)> output;
  std::function<void(const std::string& id, std::optional<int> exit_code, const std::string& error)> done;
};

class Execs {
 public:
  Execs(rt::EventLoop& loop, ExecOut out);
  /// Kills what runs and waits for it.
  ~Execs();
  /// Starts the command on a thread of its own; at most 16 at a time. Any thread.
  void run(ExecRequest request, ExecOptions options);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace helio::agent
