#include "api/dto.h"

#include "base/json/describe.h"

#include <utility>

namespace helio::api {

BOOST_DESCRIBE_STRUCT(PreviewView, (), (spec, gang, total, warnings, starts_now, would))
BOOST_DESCRIBE_STRUCT(ClusterInput, (),
                      (name, workspace, queue, priority, image, head, workers, env, mounts, retries, limits, retention, labels, log_limit,
                       disk_limit))
BOOST_DESCRIBE_STRUCT(ScaleInput, (), (group, count))
BOOST_DESCRIBE_STRUCT(ExplanationView, (), (job, state, reason, position, ahead, constraint, would_help, lines))
BOOST_DESCRIBE_STRUCT(EventView, (), (revision, at, actor, type, message, kind, id, workspace, job, data))
BOOST_DESCRIBE_STRUCT(StreamView, (), (attempt, node, stream, kind, size, durable, first_at, last_at, ended, sealed, stored))
BOOST_DESCRIBE_STRUCT(ExecInput, (), (node, argv, seconds))
BOOST_DESCRIBE_STRUCT(ExecLine, (), (data, exit_code, error))
BOOST_DESCRIBE_STRUCT(FileEntry, (), (name, kind, size, modified, note))
BOOST_DESCRIBE_STRUCT(FileList, (), (path, items))
BOOST_DESCRIBE_STRUCT(TokenView, (), (id, name, principal, role, workspaces, created, expires))
BOOST_DESCRIBE_STRUCT(TokenInput, (), (name, principal, role, workspaces, expires))
BOOST_DESCRIBE_STRUCT(NewTokenView, (), (token, secret))
BOOST_DESCRIBE_STRUCT(DashboardLinkInput, (), (read_only))
BOOST_DESCRIBE_STRUCT(DashboardLinkView, (), (path, expires, read_only))
BOOST_DESCRIBE_STRUCT(RayClientView, (), (ray_version, python_version, python))
BOOST_DESCRIBE_STRUCT(PackageView, (), (sha256))
BOOST_DESCRIBE_STRUCT(VersionView, (), (name, version, api, agent_protocol))
BOOST_DESCRIBE_STRUCT(HealthView, (), (status))
BOOST_DESCRIBE_STRUCT(DaemonView, (),
                      (version, pid, home, url, public_url, started, uptime, revision, agents, queued, active, connections, memory, threads,
                       logs))
BOOST_DESCRIBE_STRUCT(ProblemView, (), (type, title, status, code, detail, path, args))

PreviewView view(const service::Preview& preview) {
  return {preview.spec, preview.gang, preview.total, preview.warnings, preview.starts_now, preview.would};
}

model::JobSpec spec_of(ClusterInput input) {
  model::JobSpec out;
  out.type = model::JobType::cluster;
  out.name = std::move(input.name);
  out.workspace = std::move(input.workspace);
  out.queue = std::move(input.queue);
  out.priority = input.priority;
  out.image = std::move(input.image);
  out.head = std::move(input.head);
  out.workers = std::move(input.workers);
  out.env = std::move(input.env);
  out.mounts = std::move(input.mounts);
  out.retries = input.retries;
  out.limits = input.limits;
  out.retention = input.retention;
  out.labels = std::move(input.labels);
  out.log_limit = input.log_limit;
  out.disk_limit = input.disk_limit;
  return out;
}

ExplanationView view(const service::Explanation& e) {
  return {e.job, e.state, e.reason, e.position, e.ahead, e.constraint, e.would_help, e.lines};
}

EventView view(const store::Event& e) { return {e.revision, e.at, e.actor, e.type, e.message, e.kind, e.id, e.workspace, e.job, e.data}; }

StreamView view(const store::StreamMeta& m) {
  return {m.key.attempt, m.key.node, m.key.stream, m.kind, m.size, m.durable, m.first_at, m.last_at, m.ended, m.sealed, m.stored};
}

TokenView view(const model::Token& token) {
  return {token.id, token.name, token.principal, token.role, token.workspaces, token.created, token.expires};
}

json::Value node_view(const model::Node& node, const std::optional<model::NodeUsage>& usage) {
  json::Value out = json::encode(node);
  json::Object& members = out.get_object();
  members.erase("token_hash");
  if (usage) members["status"].get_object()["usage"] = json::encode(*usage);
  return out;
}

json::Value node_schema(json::Schemas& schemas) {
  json::Value reference = json::Codec<model::Node>::schema(schemas);
  schemas["Node"].get_object()["properties"].get_object().erase("token_hash");
  return reference;
}

}  // namespace helio::api

HELIO_JSON_DEFINE(helio::api::PreviewView)
HELIO_JSON_DEFINE(helio::api::ClusterInput)
HELIO_JSON_DEFINE(helio::api::ScaleInput)
HELIO_JSON_DEFINE(helio::api::ExplanationView)
HELIO_JSON_DEFINE(helio::api::EventView)
HELIO_JSON_DEFINE(helio::api::StreamView)
HELIO_JSON_DEFINE(helio::api::ExecInput)
HELIO_JSON_DEFINE(helio::api::ExecLine)
HELIO_JSON_DEFINE(helio::api::FileEntry)
HELIO_JSON_DEFINE(helio::api::FileList)
HELIO_JSON_DEFINE(helio::api::TokenView)
HELIO_JSON_DEFINE(helio::api::TokenInput)
HELIO_JSON_DEFINE(helio::api::NewTokenView)
HELIO_JSON_DEFINE(helio::api::DashboardLinkInput)
HELIO_JSON_DEFINE(helio::api::DashboardLinkView)
HELIO_JSON_DEFINE(helio::api::RayClientView)
HELIO_JSON_DEFINE(helio::api::PackageView)
HELIO_JSON_DEFINE(helio::api::VersionView)
HELIO_JSON_DEFINE(helio::api::HealthView)
HELIO_JSON_DEFINE(helio::api::DaemonView)
HELIO_JSON_DEFINE(helio::api::ProblemView)
