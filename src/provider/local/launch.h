#pragma once
// Files of a node's folder. The agent reads launch.json, assignment.json and agent.token, and writes final.json.

#include "base/ids.h"
#include "base/json/json.h"
#include "model/cluster.h"

#include <optional>
#include <string>

namespace helio::provider::local {

/// launch.json: how the node was started; written once, before its agent. Everything that a restarted daemon must know of it.
struct LaunchRecord {
  NodeId node;
  std::string home;
  std::string home_id;
  std::string daemon_file;  ///< whose `url` says where the daemon is now
  std::string daemon_url;   ///< where it was at the start
  std::string agent;        ///< binary that this node runs
  std::string temp_dir;
  std::string head_temp_dir;
  bool bind_temp_dir = false;  ///< temp_dir is mounted over head_temp_dir inside
  std::int32_t port_base = 0;
  std::string cgroup;  ///< folder
  std::string isolation;
  std::int64_t generation = 0;
  Timestamp created;
};

/// ended.json: the provider's word on a node's end, decided once and kept over its own restarts.
struct EndRecord {
  model::ProviderFact fact;
  bool harvested = false;
};

/// Names below a node's folder.
struct NodeFolder {
  std::string path;
  [[nodiscard]] std::string launch() const { return path + "/launch.json"; }
  [[nodiscard]] std::string assignment() const { return path + "/assignment.json"; }  ///< 0600
  [[nodiscard]] std::string token() const { return path + "/agent.token"; }           ///< 0600
  [[nodiscard]] std::string record() const { return path + "/agent.json"; }           ///< written by the child itself, before exec
  [[nodiscard]] std::string lock() const { return path + "/lock"; }                   ///< flock of the agent, for life
  [[nodiscard]] std::string log() const { return path + "/agent.log"; }
  [[nodiscard]] std::string final_status() const { return path + "/final.json"; }
  [[nodiscard]] std::string end() const { return path + "/ended.json"; }
  [[nodiscard]] std::string ray_token() const { return path + "/ray.token"; }  ///< 0600
};

/// The agent's last word; empty when there is none that can be read.
std::optional<model::AgentStatus> read_final(const NodeFolder& folder);

}  // namespace helio::provider::local

HELIO_JSON(helio::provider::local::LaunchRecord)
HELIO_JSON(helio::provider::local::EndRecord)
