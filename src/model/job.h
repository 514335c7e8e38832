#pragma once
// What a user submits (JobSpec) and what becomes of it (Job). Defaults are those of docs/en/jobs.md.

#include "base/ids.h"
#include "base/json/json.h"
#include "base/units.h"
#include "model/states.h"
#include "model/verdict.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace helio::model {

/// Resources that the driver itself asks Ray for. Any of them set places the driver on a worker.
struct EntrypointResources {
  double num_cpus = 0;
  double num_gpus = 0;
  Bytes memory;
  std::map<std::string, double> resources;
};

/// Exactly one of argv, command, script. argv is passed verbatim (each word quoted for the shell that Ray starts);
/// command is one shell line; script is a whole body, run as a file by `language`.
struct Entrypoint {
  std::optional<std::vector<std::string>> argv;
  std::optional<std::string> command;
  std::optional<std::string> script;
  std::string language = "bash";  ///< of script: bash (stops at the first error), sh, python
  std::optional<EntrypointResources> resources;
};

struct HeadSpec {
  std::optional<std::string> flavor;         ///< default: the pool's head flavor
  std::optional<bool> schedulable;           ///< default: false when there are workers, true when there are none
  std::optional<Bytes> object_store_memory;  ///< default: 30 % of the node's memory
};

struct WorkerGroup {
  static constexpr std::array kRequired{std::string_view("count")};
  std::string name = "workers";
  std::int32_t count = 0;
  std::optional<std::string> flavor;  ///< default: the pool's worker flavor
  std::map<std::string, std::string> labels;
  std::map<std::string, double> resources;  ///< custom logical resources of each node
  std::optional<Bytes> object_store_memory;
};

/// An environment variable of every node. Secret values are sealed in the store and shown as "***".
struct EnvVar {
  static constexpr std::array kRequired{std::string_view("name"), std::string_view("value")};
  std::string name;
  std::string value;
  bool secret = false;
};

/// A job runs its entrypoint on a cluster of its own. A long-lived cluster has none: people and programs connect to it by its name.
enum class JobType { job, cluster };
enum class Role { head, worker };
enum class Completion { driver, all };
enum class Retain { none, head, all };

/// How many further attempts each cause class may cost. Charged to one ledger per job.
struct RetryPolicy {
  std::int32_t platform = 10;
  std::int32_t node = 5;
  std::int32_t unknown = 3;
  std::int32_t user = 0;
  Span backoff{2s};  ///< before the n-th retry of a class: backoff * 2^(n-1), at most max_backoff
  Span max_backoff{10min};
};

struct Limits {
  Span pending{0s};          ///< in the queue at most; 0 = no limit
  Span readiness{10min};     ///< admitted until all nodes alive
  Span run{0s};              ///< of one attempt's driver; 0 = no limit
  Span total{0s};            ///< over all attempts, from the first admission; 0 = no limit
  Span stop_grace{30s};      ///< between the stop signal and the kill
  std::optional<Span> idle;  ///< of a long-lived cluster, without jobs, clients and actors; default: 1h; 0 = no limit
};

struct Retention {
  Retain nodes = Retain::none;  ///< kept after the end, for inspection
  Span time{0s};
};

/// A host folder that the pool allows, made visible to the job. On the local backend the path is the host's own.
struct Mount {
  static constexpr std::array kRequired{std::string_view("source")};
  std::string source;
  std::optional<std::string> target;  ///< default: source
  bool read_only = false;
};

struct RayOptions {
  bool log_to_driver = true;    ///< Ray's log monitors: prints of remote workers reach the driver
  bool dashboard_full = false;  ///< all dashboard modules; false loads what the Jobs and state API need
};

struct JobSpec {
  static constexpr std::array kRequired{std::string_view("entrypoint")};
  JobType type = JobType::job;
  std::string name;  ///< not unique, but for those of clusters that live; default: the first word of the entrypoint
  std::string workspace = "default";
  std::string queue = "default";
  std::int32_t priority = 5;  ///< 1..9, 9 first
  Entrypoint entrypoint;
  std::optional<std::string> cluster;  ///< long-lived cluster of the workspace to run in; default: a cluster of its own
  std::string image = "default";
  HeadSpec head;
  std::vector<WorkerGroup> workers;         ///< empty: the head does the work
  std::optional<json::Object> runtime_env;  ///< Ray's own, validated and passed unchanged but for uploaded packages
  std::vector<std::string> requirements;    ///< shortcut for runtime_env.pip
  std::vector<EnvVar> env;
  std::vector<Mount> mounts;
  Completion completion = Completion::driver;
  RetryPolicy retries;
  Limits limits;
  Retention retention;
  RayOptions ray;
  std::string checks = "none";                ///< health checks before the start: none
  std::map<std::string, std::string> labels;  ///< free text for people and tools
  Bytes log_limit = 4_GiB;                    ///< of all streams of an attempt; what is over it is cut, visibly
  Bytes disk_limit{0};                        ///< of a node's folder; 0 = the pool's
};

/// One time an event happened on the way of an attempt; names in docs/en/timeline.md.
struct Mark {
  std::string name;
  Timestamp at;
};

enum class StopReason { none, user, deadline, removed };

struct Job {
  JobId id;
  std::int64_t revision = 0;  ///< of the last change; filled by the store on reading
  std::string owner;          ///< principal that submitted it
  JobSpec spec;               ///< resolved: every default filled in; secret values masked
  JobState state = JobState::queued;
  std::string reason;  ///< why it is in this state, for people; never empty while not terminal
  Timestamp created;
  Timestamp state_since;
  std::optional<Timestamp> queued_since;  ///< kept over a preemption
  std::optional<Timestamp> first_admitted;
  std::optional<Timestamp> finished;
  std::optional<Timestamp> idle_since;     ///< of a long-lived cluster: nothing has run in it since
  std::optional<Timestamp> growing_since;  ///< of a long-lived cluster: it has fewer workers than its spec asks for, since then
  std::optional<Timestamp> not_before;     ///< restarting or growing: not earlier
  StopReason stop = StopReason::none;      ///< asked to stop
  std::optional<Timestamp> stop_asked;
  std::int32_t attempts = 0;                   ///< made so far
  std::optional<AttemptId> current_attempt;    ///< the live one, else the last
  std::optional<Verdict> verdict;              ///< of the last ended attempt
  std::optional<std::int32_t> exit_code;       ///< of the entrypoint, when it ended by itself
  std::map<std::string, std::int32_t> ledger;  ///< cause class -> retries charged
  std::optional<JobId> rerun_of;
  std::optional<JobId> guest_of;      ///< the long-lived cluster that it runs in
  std::vector<std::string> warnings;  ///< said at submit
};

}  // namespace helio::model

HELIO_JSON(helio::model::EntrypointResources)
HELIO_JSON(helio::model::Entrypoint)
HELIO_JSON(helio::model::HeadSpec)
HELIO_JSON(helio::model::WorkerGroup)
HELIO_JSON(helio::model::EnvVar)
HELIO_JSON_ENUM(helio::model::JobType)
HELIO_JSON_ENUM(helio::model::Role)
HELIO_JSON_ENUM(helio::model::Completion)
HELIO_JSON_ENUM(helio::model::Retain)
HELIO_JSON(helio::model::RetryPolicy)
HELIO_JSON(helio::model::Limits)
HELIO_JSON(helio::model::Retention)
HELIO_JSON(helio::model::Mount)
HELIO_JSON(helio::model::RayOptions)
HELIO_JSON(helio::model::JobSpec)
HELIO_JSON(helio::model::Mark)
HELIO_JSON_ENUM(helio::model::StopReason)
HELIO_JSON(helio::model::Job)
