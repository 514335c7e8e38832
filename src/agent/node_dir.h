#pragma once
// The files of one node: what the provider left for the agent, and what the agent leaves behind.

#include "base/error.h"
#include "model/agent_protocol.h"
#include "node/machine.h"

#include <optional>
#include <string>

namespace helio::agent {

/// Written by the provider into the node's folder before the agent is started.
struct NodeFiles {
  model::Assignment assignment;  ///< assignment.json
  std::string daemon_file;       ///< launch.json: file whose `url` says where the daemon is now
  std::string daemon_url;        ///< launch.json: used while there is no such file
  std::string token;             ///< agent.token
};
/// Errors: not_found, invalid_argument.
Result<NodeFiles> read_node_files(const std::string& node_dir);

/// ws://host:port/agent/v1 of the running daemon; read anew, because a restarted daemon may listen elsewhere.
Result<std::string> daemon_address(const NodeFiles& files);

/// Durable when it returns. Error: storage_full when the disk is full.
Result<void> write_journal(const std::string& work_dir, const node::Journal& journal);
/// An empty one when there is none. A damaged one counts as an announced submission: it must not be made twice.
node::Journal read_journal(const std::string& work_dir);

Result<void> write_final(const std::string& work_dir, const model::AgentStatus& status);
std::optional<model::AgentStatus> read_final(const std::string& work_dir);

}  // namespace helio::agent
