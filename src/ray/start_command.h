#pragma once
// The command line and the environment of `ray start`, per version and role.

#include "base/error.h"
#include "base/units.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace helio::ray {

/// The label that carries the node's id into the cluster's node table.
inline constexpr std::string_view kNodeLabel = "heliostat.io/node";

/// Ports of a node: offsets from its first.
struct Ports {
  std::int32_t base = 0;
  [[nodiscard]] std::int32_t gcs() const { return base; }
  [[nodiscard]] std::int32_t dashboard() const { return base + 1; }
  [[nodiscard]] std::int32_t ray_client() const { return base + 2; }
  [[nodiscard]] std::int32_t agent_http() const { return base + 3; }
  [[nodiscard]] std::int32_t agent_grpc() const { return base + 4; }
  [[nodiscard]] std::int32_t runtime_env_agent() const { return base + 5; }
  [[nodiscard]] std::int32_t metrics_export() const { return base + 6; }
  [[nodiscard]] std::int32_t object_manager() const { return base + 7; }
  [[nodiscard]] std::int32_t node_manager() const { return base + 8; }
  [[nodiscard]] std::int32_t dashboard_metrics() const { return base + 9; }
  [[nodiscard]] std::int32_t autoscaler_metrics() const { return base + 10; }
  [[nodiscard]] std::int32_t first_worker() const { return base + 20; }
  [[nodiscard]] std::int32_t last_worker() const { return base + 99; }
};

struct StartSpec {
  bool head = false;
  std::string prefix;  ///< holds bin/ray
  std::string ray_version;
  std::string temp_dir;
  std::string work_dir;      ///< HOME unless `env` has one; the start hook lies there
  std::string address;       ///< of this node
  std::string head_address;  ///< worker: of the head
  Ports ports;
  Ports head_ports;
  std::string node;   ///< id: label and RAY_CLOUD_INSTANCE_ID
  std::string group;  ///< RAY_NODE_TYPE_NAME
  double num_cpus = 0;
  double num_gpus = 0;
  Bytes memory;
  Bytes object_store_memory;
  std::map<std::string, double> resources;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> env;  ///< complete, but for what is set here
  std::string token_file;                  ///< empty: authentication is switched off explicitly
  Duration drain_grace{0};
  Duration stop_grace{30s};
  bool log_monitor = true;     ///< prints of remote workers reach the driver
  bool dashboard_full = true;  ///< all dashboard modules and the Ray Client server, from the start
};

struct StartCommand {
  std::vector<std::string> argv;
  std::vector<std::string> env;  ///< "K=V"
  /// Environment of other programs in the node (exec): the same without what only `ray start` may see.
  std::vector<std::string> exec_env;
  std::string hook_path;  ///< when not empty: write start_hook_source() there first
  /// Starts Ray's client server on a head, with exec_env, where the hook makes `ray start` leave it out. Empty elsewhere.
  std::vector<std::string> client_server;
};

/// Errors: invalid_argument for a version that cannot be read or is older than 2.6.
Result<StartCommand> start_command(const StartSpec& spec);

/// Python source of the start hook: leaves out what most jobs do not need, and takes its own traces out of the environment again.
std::string_view start_hook_source();

}  // namespace helio::ray
