#pragma once
// A Ray cluster and its nodes, and the attempt that owns it.

#include "base/ids.h"
#include "base/json/json.h"
#include "model/agent_protocol.h"
#include "model/job.h"
#include "model/pool.h"
#include "model/states.h"
#include "model/verdict.h"

#include <optional>
#include <string>
#include <vector>

namespace helio::model {

/// One node's place, decided with the whole gang.
struct Placement {
  NodeId node;
  HostId host;
  Role role = Role::worker;
  std::int32_t index = 0;
  std::string group;
  std::string flavor;
  Resources resources;
  std::vector<std::int32_t> gpus;  ///< indices on the host
};

struct Attempt {
  AttemptId id;
  std::int64_t revision = 0;
  JobId job;
  std::int32_t number = 1;
  AttemptState state = AttemptState::admitted;
  std::string reason;  ///< what it is doing now, for people
  Timestamp created;   ///< = admitted
  Timestamp state_since;
  std::optional<Timestamp> finished;
  ClusterId cluster;
  std::vector<Placement> placement;
  std::vector<Mark> marks;  ///< accepted, admitted, agents_up, gcs_up, nodes_alive, submitted, first_line, driver_end, logs_complete, gone
  DriverStatus driver;
  std::optional<Verdict> verdict;  ///< decided when the driver or the cluster ended; final with the state
  bool stop_asked = false;
  std::string image;
  std::string ray_version;
  std::optional<AttemptId> guest_of;  ///< of the long-lived cluster that it runs in: its only node is a submitter, and has no Ray
};

struct Cluster {
  ClusterId id;
  std::int64_t revision = 0;
  AttemptId attempt;
  JobId job;
  ClusterState state = ClusterState::requested;
  std::string reason;
  Timestamp created;
  Timestamp state_since;
  std::optional<Timestamp> retained_until;
  Retain retain = Retain::none;
  std::int32_t slot = 0;  ///< short number that paths, addresses and ports come from
  std::int32_t nodes = 0;
  std::string dashboard;  ///< http://127.0.0.1:port, once up
};

/// The name of a long-lived cluster and the job that has it, or had it last: of those that live each has its own in its workspace.
struct ClusterName {
  std::string workspace;
  std::string name;
  JobId job;
  std::int64_t revision = 0;
};

/// What the provider says about a node. Facts, not wishes.
enum class ProviderState { unknown, absent, running, ended };

struct ProviderFact {
  ProviderState state = ProviderState::unknown;
  std::string detail;  ///< "exit 0", "signal 9", "boot id differs", "clone3: EPERM"
  std::optional<std::int32_t> exit_code;
  std::string cause;  ///< model::cause::* when the provider knows it (node.oom, host.reboot, provider.failed)
  std::optional<Timestamp> at;
};

struct Node {
  NodeId id;
  std::int64_t revision = 0;
  ClusterId cluster;
  AttemptId attempt;
  JobId job;
  HostId host;
  Role role = Role::worker;
  std::int32_t index = 0;
  NodeState state = NodeState::requested;
  std::string reason;
  Timestamp created;
  Timestamp state_since;
  Placement placement;
  std::int64_t generation = 1;  ///< of the desired state below
  Phase desired = Phase::idle;
  bool stop_driver = false;
  bool added = false;      ///< of a long-lived cluster: its head has counted it, so its loss is one
  bool leaving = false;    ///< scaled away: it goes when its work has ended, and its end is nobody's fault
  AgentStatus status;      ///< last accepted report
  ProviderFact fact;       ///< last word of the provider
  std::string token_hash;  ///< SHA-256 of the agent's token; revoked (empty) at the end
  bool connected = false;  ///< agent's websocket is open; false after a daemon restart until it dials in
  std::string address;
  std::int32_t port_base = 0;
};

}  // namespace helio::model

HELIO_JSON(helio::model::Placement)
HELIO_JSON(helio::model::Attempt)
HELIO_JSON(helio::model::Cluster)
HELIO_JSON(helio::model::ClusterName)
HELIO_JSON_ENUM(helio::model::ProviderState)
HELIO_JSON(helio::model::ProviderFact)
HELIO_JSON(helio::model::Node)
