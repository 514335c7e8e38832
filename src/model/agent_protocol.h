#pragma once
// The two documents that daemon and agent exchange (api/agent-protocol.md). Both are level-triggered: resending is harmless,
// a lost one is repaired by the next. Unknown fields are ignored, so version N talks to N-1.

#include "base/ids.h"
#include "base/json/json.h"
#include "base/units.h"
#include "model/job.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::model {

inline constexpr std::int32_t kAgentProtocol = 1;

namespace program {
/// Ray's client server, on a head. The end of its exec is its own end.
inline constexpr std::string_view kRayClientServer = "ray_client_server";
}  // namespace program

/// How far a node shall go. Only ever raised, but for `drained` and `gone`, which may come at any time.
enum class Phase { idle, joined, checked, driving, drained, gone };

/// A content-addressed upload that runtime_env refers to as "helio://packages/<sha256>.zip".
struct PackageRef {
  PackageId sha256;
  std::string uri;   ///< as it stands in runtime_env
  std::string path;  ///< file on this host
  Bytes size;
};

/// The entrypoint, for the head's agent. `submission_id` is the attempt's id: journaled before the POST, so it happens once.
struct DriverSpec {
  std::string submission_id;
  std::string entrypoint;  ///< the shell line for Ray
  std::optional<json::Object> runtime_env;
  std::map<std::string, std::string> metadata;
  std::optional<EntrypointResources> resources;
  std::vector<PackageRef> packages;  ///< to put into the cluster first
};

/// The whole desired state of one node.
struct Assignment {
  std::int32_t protocol = kAgentProtocol;
  NodeId node;
  AttemptId attempt;
  ClusterId cluster;
  std::int64_t generation = 0;  ///< grows with each change; a smaller one than seen is refused
  Role role = Role::worker;
  bool submitter = false;  ///< a head without Ray: hands its driver to the cluster at head_address, and looks after it
  std::int32_t index = 0;  ///< 0 = head
  Phase phase = Phase::idle;

  std::string prefix;  ///< image: Python prefix
  std::string ray_version;
  std::string temp_dir;        ///< at most 38 bytes
  std::string head_temp_dir;   ///< Ray before 2.55: every node must use the head's path
  std::string work_dir;        ///< node's own folder: journal, status, script; wiped at the end
  std::string ray_token_file;  ///< 0600; empty when the Ray version knows no tokens
  std::string address;         ///< of this node, 127.x.y.z
  std::string head_address;
  std::int32_t port_base = 0;  ///< first of 100 ports of this node
  std::int32_t head_port_base = 0;
  std::int32_t nodes = 1;    ///< of the cluster, head included: readiness waits for so many
  std::string ray_node_tag;  ///< RAY_CLOUD_INSTANCE_ID: the node id
  std::string group;         ///< worker group name, "head" for the head

  double num_cpus = 0;  ///< logical resources for Ray
  double num_gpus = 0;
  Bytes memory;
  Bytes object_store_memory;
  std::map<std::string, double> resources;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> env;  ///< complete: platform's and the job's. Secrets are here, so the file is 0600
  RayOptions ray;
  Span drain_grace{0s};  ///< RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S
  Span stop_grace{30s};  ///< between stop signal and kill of the driver

  std::optional<DriverSpec> driver;   ///< head only
  bool stop_driver = false;           ///< head only: stop it, whatever it does
  bool leaving = false;               ///< worker: its raylet is drained, and the node goes with it
  std::vector<NodeId> leaving_nodes;  ///< head only: to be drained, also those that have left already
  Span watch_idle{0s};                ///< head only: look so often whether anything runs in the cluster, and tell since when not; 0 = no
  std::string cgroup;                 ///< folder of this node's limits, empty when watched
  Bytes memory_limit;                 ///< for watching, when there is no cgroup
  Bytes disk_limit;                   ///< of work_dir and temp_dir together; 0 = none
  Bytes log_limit;                    ///< per attempt, shared out by stream
};

enum class ProcessState { none, running, exited };

struct ProcessStatus {
  ProcessState state = ProcessState::none;
  std::optional<std::int32_t> exit_code;  ///< 128 + signal when killed
};

enum class DriverPhase { none, submitting, pending, running, stopping, ended };

struct DriverStatus {
  DriverPhase phase = DriverPhase::none;
  std::string submission_id;
  std::string ray_status;  ///< PENDING RUNNING STOPPED SUCCEEDED FAILED
  std::string error_type;
  std::string message;  ///< Ray's
  std::optional<std::int32_t> exit_code;
  std::string log_node;  ///< node id whose session holds the driver's log
};

/// What went wrong on a node first; becomes the verdict's cause.
struct NodeFault {
  std::string cause;  ///< model::cause::*
  std::string message;
  std::optional<std::int32_t> exit_code;
  std::vector<Evidence> evidence;
  std::optional<Timestamp> at;
};

/// What a node uses, measured by its agent every few seconds; not durable.
struct NodeUsage {
  double cpu = 0;  ///< cores busy
  Bytes memory;
  Bytes disk;
  std::int64_t processes = 0;
};

/// Processes that the kernel killed for the node's memory limit. The last kill came between the two times.
struct OomKills {
  std::int64_t count = 0;
  Timestamp after;
  Timestamp by;
};

/// The whole observed state of one node.
struct AgentStatus {
  std::int32_t protocol = kAgentProtocol;
  NodeId node;
  std::int64_t generation = 0;  ///< of the assignment that this answers
  std::int64_t sequence = 0;    ///< grows with each status of this node, over reconnects: older ones are ignored
  std::string agent_version;
  Phase reached = Phase::idle;
  std::string step;  ///< what it is doing now, for people: "waiting for GCS at 127.30.1.2:12000"
  ProcessStatus ray_start;
  bool gcs_up = false;
  bool api_up = false;               ///< head: /api/version answers
  bool head_agent_up = false;        ///< head: Ray's own agent answers, so a submit works
  std::int32_t nodes_alive = 0;      ///< head: rows ALIVE that belong to this cluster
  std::vector<NodeId> nodes_joined;  ///< head: their node ids
  DriverStatus driver;
  std::optional<Timestamp> idle_since;  ///< head: no job, client or actor since; empty when one is there, or nobody knows
  std::optional<NodeFault> fault;       ///< the first one stays
  std::optional<OomKills> oom;
  std::vector<Mark> marks;      ///< agent_up, ray_exec, gcs_up, api_up, nodes_alive, submitted, first_line, driver_end, ...
  bool logs_complete = false;   ///< everything on disk has been shipped and acknowledged
  bool logs_caught_up = false;  ///< head: so has all that was there when the driver ended; more may come while the node is kept
  std::optional<NodeUsage> usage;
};

/// First frame after the websocket is open, agent to daemon.
struct AgentHello {
  std::int32_t protocol = kAgentProtocol;
  NodeId node;
  std::string agent_version;
  std::int64_t generation = 0;  ///< of the assignment it acts on
};

/// A stream of bytes that the agent ships: a file on the node's disk.
struct StreamInfo {
  std::int32_t id = 0;  ///< of this connection
  std::string name;     ///< "driver", "worker-….out", "raylet.err"; [A-Za-z0-9._-]{1,200}
  std::string kind;     ///< driver, worker, ray, agent
  Bytes offset;         ///< daemon to agent: durable so far, go on from here
  bool ended = false;   ///< agent to daemon: no more will come
};

}  // namespace helio::model

HELIO_JSON_ENUM(helio::model::Phase)
HELIO_JSON(helio::model::PackageRef)
HELIO_JSON(helio::model::DriverSpec)
HELIO_JSON(helio::model::Assignment)
HELIO_JSON_ENUM(helio::model::ProcessState)
HELIO_JSON(helio::model::ProcessStatus)
HELIO_JSON_ENUM(helio::model::DriverPhase)
HELIO_JSON(helio::model::DriverStatus)
HELIO_JSON(helio::model::NodeFault)
HELIO_JSON(helio::model::NodeUsage)
HELIO_JSON(helio::model::OomKills)
HELIO_JSON(helio::model::AgentStatus)
HELIO_JSON(helio::model::AgentHello)
HELIO_JSON(helio::model::StreamInfo)
