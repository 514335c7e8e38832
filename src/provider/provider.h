#pragma once
// Makes nodes exist and reports on them. All calls are idempotent, by id; results arrive as observations
// (store::record_fact), never as return values that somebody must remember.

#include "base/error.h"
#include "base/ids.h"
#include "model/agent_protocol.h"
#include "model/cluster.h"
#include "model/pool.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace helio::provider {

/// All that is needed to make one node: an agent with its assignment.
struct NodeSpec {
  model::Assignment assignment;  ///< paths inside are filled in by plan_node() of the same provider
  model::Resources limits;
  std::vector<std::int32_t> gpus;
  std::string agent_token;  ///< secret for the agent's websocket; goes to a 0600 file
  std::string ray_token;    ///< of the cluster; empty when its Ray knows none
  std::string daemon_url;   ///< ws://127.0.0.1:port/agent/v1
};

struct NodeFact {
  NodeId node;
  model::ProviderFact fact;
};

struct Grace {
  Duration term{5s};  ///< after SIGTERM to the agent
};

/// Where a node's things lie; a pure function of slot and index so that a restarted daemon finds them again.
struct NodePlan {
  std::string temp_dir;  ///< at most 38 bytes
  std::string head_temp_dir;
  std::string work_dir;
  std::string ray_token_file;
  std::string address;
  std::string head_address;
  std::int32_t port_base = 0;
  std::int32_t head_port_base = 0;
  std::string cgroup;  ///< empty: watched
};

class Provider {
 public:
  virtual ~Provider() = default;

  /// Paths, address and ports of node `index` of the cluster in `slot`. Errors: resource_exhausted "no free ports".
  /// `taken` are the port bases of live nodes. The result is stored with the node and never computed again. Plan index 0 first: later
  /// indices of the slot get its head_port_base; 0 there means that this provider has not planned the head.
  virtual Result<NodePlan> plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) = 0;
  /// Make this node exist; repeating it for one that runs hands it the assignment if its generation is newer.
  virtual Result<void> ensure(const NodeSpec& spec) = 0;
  /// End the node, prove its death, wipe its folder, cgroup and ports. Returns at once; the fact `ended` or `absent` follows.
  virtual Result<void> remove(const NodeId& node, Grace grace) = 0;
  /// All nodes that this provider knows of, for reconcile and orphan sweeping.
  virtual Result<std::vector<NodeFact>> list() = 0;
  /// What there is to place on.
  virtual Result<std::vector<model::Host>> capacity() = 0;

  using Observer = std::function<void(const NodeId&, const model::ProviderFact&)>;
  /// Called with each new fact, from any thread. Set once, before the first ensure().
  virtual void observe(Observer observer) = 0;
  /// What the node's agent left behind as its last word. There from before the fact `ended` is observed until the observer of `absent`
  /// has returned: record it before the fact. Empty when the agent ended without one. Any thread, also inside the observer.
  virtual std::optional<model::AgentStatus> final_status(const NodeId& /*node*/) { return std::nullopt; }
  /// Ends and wipes everything that carries the id of a node outside `live`: processes, folders, cgroups. Returns what was found.
  virtual Result<std::vector<std::string>> sweep(const std::vector<NodeId>& live) = 0;
};

}  // namespace helio::provider
