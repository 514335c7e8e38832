// The Jobs API of a long-lived cluster. Its jobs are Ray's, so Ray answers: version, packages, jobs and their logs are carried on to the
// cluster's dashboard as they are. Here is decided who may.

#include "api/cluster_forward.h"
#include "api/ray_front.h"
#include "api/tie.h"
#include "service/dashboards.h"

#include <array>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;
using service::Dashboard;

constexpr std::array<std::string_view, 4> kMethods{"GET", "POST", "PUT", "DELETE"};
constexpr std::size_t kBodyLimit = 101U << 20U;  ///< Ray takes packages of up to 100 MiB

bool belongs_to_jobs(const std::vector<std::string>& path) {
  return path.size() >= 2 && path[0] == "api" && (path[1] == "version" || path[1] == "jobs" || path[1] == "packages");
}

net::Response serve(Context& context, net::Request& request) {
  const bool reads = request.method == "GET";
  auto caller = ray_caller(context, request, reads ? Verb::see : Verb::create, Kind::job);
  if (!caller) return std::move(caller.error());
  auto segments = segments_below(request);
  if (!segments) return ray_refusal(segments.error(), 400);
  const std::string& name = request.params.at("cluster");
  auto job = context.jobs.cluster(caller->scope, request.params.at("workspace"), name);
  if (!job) return ray_refusal(job.error(), job.error().code() == ErrorCode::not_found ? 404 : 503);
  if (!belongs_to_jobs(*segments)) {
    return ray_refusal(
        Error(ErrorCode::not_found, fmt::format("only the Jobs API is here; the dashboard is at /clusters/{}/dashboard/", name)), 404);
  }
  auto dashboard = context.dashboards.get(*job);
  if (!dashboard) return ray_refusal(dashboard.error(), 404);
  if ((*dashboard)->state != Dashboard::State::live) {
    const Error why(ErrorCode::unavailable, (*dashboard)->ended
                                                ? fmt::format("the cluster '{}' has ended; make it again with helio cluster create", name)
                                                : fmt::format("the cluster '{}' is not up yet; see helio cluster show {}", name, name));
    return ray_refusal(why, (*dashboard)->ended ? 410 : 503);
  }
  net::Response out;
  out.cord = tie(context, caller->token);
  out.forward = forward_to_cluster(**dashboard, request, *segments, reads ? ClusterUse::look : ClusterUse::act);
  return out;
}

}  // namespace

void mount_cluster_jobs(net::Router& router, Context& context) {
  const std::string path = "/ray/{workspace}/clusters/{cluster}/{rest...}";
  net::RouteOptions options;
  options.body_limit = kBodyLimit;
  options.admit = [&context](net::Request& request) -> std::optional<net::Response> {
    net::Response response = serve(context, request);
    if (response.forward) return std::nullopt;
    return response;
  };
  for (const std::string_view method : kMethods) {
    router.add(std::string(method), path, options, [&context](net::Request& request) { return serve(context, request); });
  }
  router.add_websocket(path, [&context](net::Request& request) {
    net::WsAccept out;
    net::Response response = serve(context, request);
    if (response.forward) {
      out.forward = std::move(response.forward);
      out.cord = std::move(response.cord);
    } else {
      out.refuse = std::move(response);
    }
    return out;
  });
}

}  // namespace helio::api
