#pragma once
// Ray's client server of a head. Few jobs have clients, so it is started when the first one comes, and then stays.

#include "base/error.h"
#include "base/executor.h"
#include "proc/process.h"
#include "rt/event_loop.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace helio::agent {

struct ClientServerOptions {
  std::vector<std::string> argv;  ///< empty: `ray start` starts it itself, or the node is no head
  std::vector<std::string> env;   ///< "K=V", complete
  std::string cwd;
  std::function<Result<std::string>()> log_folder;  ///< asked at the start: of Ray's session, whose logs are shipped
};

/// Used on the thread of `executor` alone.
class ClientServer {
 public:
  /// Tells those who wait why it is not there (any more), with the end of what it said.
  using Ended = std::function<void(const std::string& id, std::optional<int> exit_code, const std::string& why)>;
  ClientServer(rt::EventLoop& loop, Executor& executor, ClientServerOptions options, Ended ended);

  /// Starts it unless it runs; `id` waits for its end. Where `ray start` starts it there is nothing to do, and nothing is told.
  void want(const std::string& id);
  /// `id`, or everybody, does not wait any more. The server stays.
  void forget(const std::string& id) { waiting_.erase(id); }
  void forget_all() { waiting_.clear(); }

 private:
  void ended(int exit_code);
  void tell(std::optional<int> exit_code, const std::string& why);

  rt::EventLoop& loop_;
  Executor& executor_;
  const ClientServerOptions options_;
  const Ended ended_;
  std::shared_ptr<proc::Process> process_;
  std::string errors_;  ///< file
  std::set<std::string> waiting_;
};

}  // namespace helio::agent
