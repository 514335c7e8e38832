#include "service/dashboard_routes.h"

#include <algorithm>
#include <array>
#include <span>

namespace helio::service {
namespace {

/// Routes of Ray's dashboard (2.60) that only look, all of them GET: "*" is one segment, "**" the rest.
constexpr std::array<std::string_view, 47> kLooks{
    "",
    "favicon.ico",
    "static/**",
    "timezone",
    "cluster_id",
    "usage_stats_enabled",
    "events",
    "nodes",
    "nodes/*",
    "logical/actors",
    "logical/actors/*",
    "api/authentication_mode",
    "api/version",
    "api/ray/version",
    "api/cluster_status",
    "api/component_activities",
    "api/gcs_healthz",
    "api/grafana_health",
    "api/prometheus_health",
    "api/prometheus/sd",
    "api/profiling_enabled",
    "api/jobs",
    "api/jobs/**",
    "api/data/datasets/*",
    "api/train/v2/runs",
    "api/train/v2/runs/v1",
    "api/serve/applications",
    "api/v0/actors",
    "api/v0/jobs",
    "api/v0/nodes",
    "api/v0/placement_groups",
    "api/v0/workers",
    "api/v0/tasks",
    "api/v0/objects",
    "api/v0/runtime_envs",
    "api/v0/cluster_events",
    "api/v0/platform_events",
    "api/v0/cluster_metadata",
    "api/v0/runtime_env_redaction",
    "api/v0/actors/summarize",
    "api/v0/tasks/summarize",
    "api/v0/objects/summarize",
    "api/v0/tasks/timeline",
    "api/v0/logs",
    "api/v0/logs/file",
    "api/v0/logs/stream",
    "-/healthz",
};

bool fits(std::string_view pattern, std::span<const std::string> segments) {
  while (true) {
    const std::size_t end = std::min(pattern.find('/'), pattern.size());
    const std::string_view part = pattern.substr(0, end);
    if (part == "**") return !segments.empty();
    if (segments.empty() || (part != "*" ? part != segments.front() : segments.front().empty())) return false;
    segments = segments.subspan(1);
    if (end == pattern.size()) return segments.empty();
    pattern.remove_prefix(end + 1);
  }
}

}  // namespace

DashboardUse dashboard_use(std::string_view method, const std::vector<std::string>& segments) {
  std::span<const std::string> path(segments);
  if (path.size() > 1 && path.back().empty()) path = path.first(path.size() - 1);
  const bool reads = method == "GET" || method == "HEAD";
  const bool below_api = path.size() >= 2 && path[0] == "api";
  if (!reads && below_api && (path[1] == "jobs" || path[1] == "packages")) return DashboardUse::jobs;
  const bool looks = reads && std::ranges::any_of(kLooks, [path](std::string_view pattern) { return fits(pattern, path); });
  return looks ? DashboardUse::look : DashboardUse::act;
}

}  // namespace helio::service
