#pragma once
// The classified cause of an attempt's end, with its evidence and what policy did about it.

#include "base/json/json.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace helio::model {

/// Which retry budget an end is charged to.
enum class CauseClass { none, user, node, platform, unknown };

enum class Confidence { high, medium, low };

struct Evidence {
  std::string source;  ///< stream or fact: "driver", "w2/raylet.err", "agent", "provider"
  std::string text;    ///< at most 512 bytes
  std::optional<Timestamp> at;
};

/// `cause` is a stable id that programs match on; docs/en/verdicts.md lists all of them with what to do.
struct Verdict {
  std::string cause;  ///< such as entrypoint.exit, raylet.died, head.gcs_died, readiness.deadline, stopped.user
  CauseClass charged_to = CauseClass::none;
  Confidence confidence = Confidence::high;
  std::string message;                    ///< one sentence for people, with what to do next
  std::string stage;                      ///< admitted, starting, checking, running, ending
  std::optional<std::string> node;        ///< node id that failed first
  std::optional<std::int32_t> exit_code;  ///< of the driver or of the process that died
  std::vector<Evidence> evidence;
  std::string decision;  ///< what policy did: "retry 2 of 5 in 4s", "final: no retries for user errors"
};

/// Stable ids of causes, one place. The class that each is charged to is in cause_class().
namespace cause {
inline constexpr std::string_view kSucceeded = "succeeded";
inline constexpr std::string_view kEntrypointExit = "entrypoint.exit";      ///< non-zero exit code
inline constexpr std::string_view kEntrypointSignal = "entrypoint.signal";  ///< driver killed by a signal from outside
inline constexpr std::string_view kEntrypointNotStarted = "entrypoint.not_started";
inline constexpr std::string_view kRuntimeEnv = "runtime_env.failed";
inline constexpr std::string_view kStoppedUser = "stopped.user";
inline constexpr std::string_view kStoppedIdle = "stopped.idle";  ///< a long-lived cluster that nobody used
inline constexpr std::string_view kDeadlineRun = "deadline.run";
inline constexpr std::string_view kDeadlineTotal = "deadline.total";
inline constexpr std::string_view kDeadlinePending = "deadline.pending";
inline constexpr std::string_view kDeadlineReadiness = "deadline.readiness";
inline constexpr std::string_view kRayStartFailed = "ray_start.failed";  ///< exited before the node joined
inline constexpr std::string_view kRayStartDied = "ray_start.died";      ///< the `ray start` process, later
inline constexpr std::string_view kRayletDied = "raylet.died";
inline constexpr std::string_view kGcsDied = "gcs.died";
inline constexpr std::string_view kDashboardDied = "dashboard.died";
inline constexpr std::string_view kSupervisorDied = "supervisor.died";  ///< Ray's job supervisor
inline constexpr std::string_view kGcsRowDead = "gcs_row.dead";         ///< the GCS calls the node dead, its raylet lives
inline constexpr std::string_view kAgentDied = "agent.died";            ///< helio-agent, and with it the node
inline constexpr std::string_view kNodeOom = "node.oom";                ///< kernel killed for the node's memory limit
inline constexpr std::string_view kNodeDiskFull = "node.disk_full";
inline constexpr std::string_view kPortInUse = "port.in_use";
inline constexpr std::string_view kProviderFailed = "provider.failed";  ///< the node could not be made
inline constexpr std::string_view kHostReboot = "host.reboot";
inline constexpr std::string_view kImageBroken = "image.broken";          ///< Ray missing or other version than registered
inline constexpr std::string_view kInfeasible = "entrypoint.infeasible";  ///< resources that no node of the cluster has
inline constexpr std::string_view kClusterLost = "cluster.lost";          ///< the long-lived cluster that the job ran in is made again
inline constexpr std::string_view kClusterEnded = "cluster.ended";        ///< it will not come back
inline constexpr std::string_view kUnknown = "unknown";
}  // namespace cause

CauseClass cause_class(std::string_view cause);

}  // namespace helio::model

HELIO_JSON_ENUM(helio::model::CauseClass)
HELIO_JSON_ENUM(helio::model::Confidence)
HELIO_JSON(helio::model::Evidence)
HELIO_JSON(helio::model::Verdict)
