#pragma once
// The daemon's side of agents (api/agent-protocol.md): one websocket per node; assignments out, statuses and streams in, exec sessions.

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/agent_protocol.h"
#include "net/server.h"
#include "store/log_store.h"
#include "store/store.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace helio::link {

/// The whole desired state of a node, as the store has it now. Called on worker threads.
using AssignmentSource = std::function<Result<model::Assignment>(const NodeId&)>;

struct HubOptions {
  std::string version;               ///< of the daemon; said in `welcome`
  std::size_t threads = 3;           ///< workers shared by all connections
  Duration sync_every{50ms};         ///< log bytes are made durable and acknowledged at most so late
  std::size_t sync_bytes = 2 << 20;  /// ... or when so many have come
  Duration hello_deadline{10s};
  Duration retry_after{1s};  ///< after the store or the log store refused (disk full)
};

struct ExecRequest {
  std::vector<std::string> argv;
  /// Instead of argv, a program that the agent knows by this name (model::program); it runs once per node and outlives who asked for it.
  std::string program;
  std::int32_t seconds = 60;  ///< the agent ends the command then
};

/// What an exec session tells. Called on any thread, one call at a time; must not block.
struct ExecHandlers {
  std::function<void(std::string base64)> on_output;
  /// Last call: exit code (128 + signal when killed), or why there is none.
  std::function<void(Result<std::int32_t>)> on_done;
};

class Hub {
 public:
  /// `store`, `logs`, `clock` outlive the hub.
  Hub(store::Store& store, store::LogStore& logs, const Clock& clock, AssignmentSource assignment, HubOptions options = {});
  /// stop().
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  /// For Router::add_websocket("/agent/v1", …).
  net::WsHandler handler();

  [[nodiscard]] std::size_t connected() const;
  [[nodiscard]] bool connected(const NodeId& node) const;
  /// Latest usage of every connected node. Any thread.
  [[nodiscard]] std::map<NodeId, model::NodeUsage> usage() const;
  /// Starts a command in a node. The function that comes back ends it, if it still runs: for who does not want to know any more; any
  /// thread, any time. Errors: unavailable (its agent is not connected), and then no handler is called.
  Result<std::function<void()>> exec(const NodeId& node, const ExecRequest& request, ExecHandlers handlers);

  /// Closes all connections and joins the workers. The nodes live on. Idempotent.
  void stop();

 private:
  std::shared_ptr<struct Core> core_;
  std::unique_ptr<store::Store::Subscription> subscription_;
};

}  // namespace helio::link
