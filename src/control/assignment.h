#pragma once
// The whole desired state of one node, from stored rows and secrets alone: the same generation always gives the same document.

#include "base/error.h"
#include "base/ids.h"
#include "base/sealer.h"
#include "model/agent_protocol.h"
#include "model/home.h"
#include "model/settings.h"
#include "provider/provider.h"
#include "store/store.h"

#include <string>

namespace helio::control {

/// What assignments depend on besides the store; fixed while a daemon runs.
struct AssignmentContext {
  const Sealer& sealer;
  const model::Settings& settings;
  const model::Home& home;
  /// Network interface for NCCL and Gloo, only where the host has several; empty: none is set.
  std::string interface;
  /// "http://127.0.0.1:7070": where people reach the daemon, for the dashboard's address that Ray prints; empty: Ray prints its own.
  std::string url;
};

/// Error: not_found for a node that is unknown or gone, or whose image was removed; internal when a secret cannot be opened.
Result<model::Assignment> build_assignment(store::ReadTx& tx, const AssignmentContext& context, const NodeId& node);
Result<model::Assignment> build_assignment(store::Store& store, const AssignmentContext& context, const NodeId& node);

/// The same with what the provider needs to make the node: limits and tokens.
Result<provider::NodeSpec> build_node_spec(store::Store& store, const AssignmentContext& context, const NodeId& node,
                                           const std::string& daemon_url);

/// The line that Ray gives to its shell. argv arrives word by word as it was written. `script_path` is where a script's body lies.
std::string shell_line(const model::Entrypoint& entrypoint, const std::string& script_path);
/// One word that a POSIX shell reads back unchanged.
std::string shell_quote(const std::string& word);
/// Where the body of a script lies: <home>/jobs/<id>/script.{sh,py}.
std::string script_path(const model::Home& home, const JobId& job, const model::Entrypoint& entrypoint);

}  // namespace helio::control
