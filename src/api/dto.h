#pragma once
// What only the API says: documents that are no stored resource.

#include "base/json/json.h"
#include "base/units.h"
#include "model/access.h"
#include "model/cluster.h"
#include "model/job.h"
#include "service/jobs.h"
#include "service/logs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace helio::api {

struct PreviewView {
  model::JobSpec spec;
  std::vector<model::Placement> gang;
  model::Resources total;
  std::vector<std::string> warnings;
  bool starts_now = false;
  std::string would;
};
PreviewView view(const service::Preview& preview);

/// Body of POST /v1/clusters: a job's spec without what only jobs have.
struct ClusterInput {
  static constexpr std::array kRequired{std::string_view("name")};
  std::string name;  ///< 1 to 63 of a-z, 0-9 and -; no other cluster that lives has it
  std::string workspace = "default";
  std::string queue = "default";
  std::int32_t priority = 5;
  std::string image = "default";
  model::HeadSpec head;
  std::vector<model::WorkerGroup> workers;
  std::vector<model::EnvVar> env;
  std::vector<model::Mount> mounts;
  model::RetryPolicy retries;
  model::Limits limits;
  model::Retention retention;
  std::map<std::string, std::string> labels;
  Bytes log_limit = 4_GiB;
  Bytes disk_limit{0};
};
model::JobSpec spec_of(ClusterInput input);

/// Body of POST /v1/clusters/{cluster}/scale.
struct ScaleInput {
  static constexpr std::array kRequired{std::string_view("count")};
  std::optional<std::string> group;  ///< of workers; may be left out where there is one
  std::int32_t count = 0;            ///< workers that it shall have
};

struct ExplanationView {
  JobId job;
  model::JobState state = model::JobState::queued;
  std::string reason;
  std::optional<std::int32_t> position;
  std::vector<JobId> ahead;
  std::string constraint;
  std::string would_help;
  std::vector<std::string> lines;
};
ExplanationView view(const service::Explanation& explanation);

/// One change, for watchers. What a row looked like before and after is not told: rows hold more than readers may see.
struct EventView {
  std::int64_t revision = 0;
  Timestamp at;
  std::string actor;
  std::string type;
  std::string message;
  std::string kind;
  std::string id;
  std::string workspace;
  std::string job;
  json::Value data;
};
EventView view(const store::Event& event);

struct StreamView {
  AttemptId attempt;
  NodeId node;
  std::string stream;
  std::string kind;  ///< driver, worker, ray, agent
  std::int64_t size = 0;
  std::int64_t durable = 0;
  Timestamp first_at;
  Timestamp last_at;
  bool ended = false;
  bool sealed = false;
  std::int64_t stored = 0;
};
StreamView view(const store::StreamMeta& meta);

/// A node without what is nobody's business, and with what its agent last measured.
json::Value node_view(const model::Node& node, const std::optional<model::NodeUsage>& usage);
json::Value node_schema(json::Schemas& schemas);

struct ExecInput {
  static constexpr std::array kRequired{std::string_view("argv")};
  std::string node = "head";  ///< head, w1, …, or a node id
  std::vector<std::string> argv;
  std::int32_t seconds = 60;
};

/// One line of an exec reply: a piece of output, or the end.
struct ExecLine {
  std::optional<std::string> data;        ///< base64; stdout and stderr together
  std::optional<std::int32_t> exit_code;  ///< last line: 128 + signal when killed
  std::optional<std::string> error;       ///< last line: why there is no exit code
};

struct FileEntry {
  std::string name;
  std::string kind;  ///< file, folder, other
  Bytes size;
  Timestamp modified;
  std::optional<std::string> note;  ///< why it cannot be read
};
struct FileList {
  std::string path;
  std::vector<FileEntry> items;
};

/// A token without its hash.
struct TokenView {
  TokenId id;
  std::string name;
  std::string principal;
  model::AccessRole role = model::AccessRole::viewer;
  std::vector<std::string> workspaces;  ///< empty: all
  Timestamp created;
  std::optional<Timestamp> expires;
};
TokenView view(const model::Token& token);

struct TokenInput {
  static constexpr std::array kRequired{std::string_view("name"), std::string_view("role")};
  std::string name;
  std::optional<std::string> principal;  ///< who acts; default: the name
  model::AccessRole role = model::AccessRole::viewer;
  std::vector<std::string> workspaces;  ///< that it knows of; empty: all
  std::optional<Timestamp> expires;
};

/// Body of POST /v1/jobs/{id}/dashboard-links; may be left out.
struct DashboardLinkInput {
  bool read_only = false;  ///< the link only looks, whatever its maker may do
};

struct DashboardLinkView {
  std::string path;  ///< below the daemon's address; opens once
  Timestamp expires;
  bool read_only = false;
};

/// What a program needs to be like to reach a job's cluster by Ray Client.
struct RayClientView {
  std::string ray_version;
  std::string python_version;  ///< empty: not known any more
  std::string python;          ///< an interpreter that would do, on the daemon's machine; empty: not known any more
};

struct NewTokenView {
  TokenView token;
  std::string secret;
};

struct PackageView {
  PackageId sha256;
};

struct VersionView {
  std::string name = "heliostat";
  std::string version;
  std::string api = "v1";
  std::int32_t agent_protocol = model::kAgentProtocol;
};

struct HealthView {
  std::string status = "ok";
};

/// What the daemon says about itself.
struct DaemonView {
  std::string version;
  std::int64_t pid = 0;
  std::string home;
  std::string url;
  std::optional<std::string> public_url;  ///< https, where TLS is configured
  Timestamp started;
  Span uptime;
  std::int64_t revision = 0;  ///< of the store
  std::int64_t agents = 0;    ///< connected
  std::int64_t queued = 0;    ///< jobs that wait
  std::int64_t active = 0;    ///< jobs that hold nodes
  std::int64_t connections = 0;
  Bytes memory;  ///< resident
  std::int64_t threads = 0;
  Bytes logs;  ///< on disk
};

/// RFC 9457.
struct ProblemView {
  std::string type;
  std::string title;
  std::int32_t status = 0;
  std::string code;
  std::string detail;
  std::optional<std::string> path;
  std::map<std::string, std::string> args;
};

}  // namespace helio::api

HELIO_JSON(helio::api::PreviewView)
HELIO_JSON(helio::api::ClusterInput)
HELIO_JSON(helio::api::ScaleInput)
HELIO_JSON(helio::api::ExplanationView)
HELIO_JSON(helio::api::EventView)
HELIO_JSON(helio::api::StreamView)
HELIO_JSON(helio::api::ExecInput)
HELIO_JSON(helio::api::ExecLine)
HELIO_JSON(helio::api::FileEntry)
HELIO_JSON(helio::api::FileList)
HELIO_JSON(helio::api::TokenView)
HELIO_JSON(helio::api::TokenInput)
HELIO_JSON(helio::api::NewTokenView)
HELIO_JSON(helio::api::DashboardLinkInput)
HELIO_JSON(helio::api::DashboardLinkView)
HELIO_JSON(helio::api::RayClientView)
HELIO_JSON(helio::api::PackageView)
HELIO_JSON(helio::api::VersionView)
HELIO_JSON(helio::api::HealthView)
HELIO_JSON(helio::api::DaemonView)
HELIO_JSON(helio::api::ProblemView)
