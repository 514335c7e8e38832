// /jobs/{id}/dashboard/…: the cluster's own Ray dashboard, for those who may see the job. What acts is for its owner, what goes around
// heliostat is for nobody; the cluster's token never reaches the browser.

#include "api/browser.h"
#include "api/cluster_forward.h"
#include "api/log_text.h"
#include "api/page.h"
#include "api/tie.h"
#include "api/visitor.h"
#include "base/log.h"
#include "service/dashboard_routes.h"
#include "service/dashboards.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Ownership;
using auth::Verb;
using service::Dashboard;
using service::DashboardUse;

constexpr std::array<std::string_view, 6> kMethods{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
constexpr std::size_t kBodyLimit = 1U << 20U;

std::string base_of(const JobId& job) { return "/jobs/" + job.value + "/dashboard/"; }

/// A refusal as a page for people and as a problem document for programs.
net::Response refuse(const net::Request& request, const Error& error, int status = 0) {
  if (status == 0) status = http_status(error.code());
  if (error.code() == ErrorCode::internal) log::error("{}: {}", request.path, error.text());
  if (!wants_page(request)) {
    net::Response out = net::problem(error, status);
    if (status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"heliostat\"");
    return out;
  }
  const std::string title(net::status_title(status));
  return show({status, language_of(request), title,
               fmt::format("<h1>{}</h1><p class=\"why\">{}</p>", escape_html(title), escape_html(error.message()))});
}

net::Response ask_to_log_in(const net::Request& request) {
  if (!wants_page(request)) {
    return refuse(request, Error(ErrorCode::unauthenticated, "a token is needed: Authorization: Bearer <token>, or log in at /login"));
  }
  net::Response out;
  out.status = 303;
  out.headers.emplace_back("Location", "/login?next=" + net::url_encode(request.target));
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

/// What a page of the cluster may reach in the browser: itself. Its code is the job's, and it shares our origin.
std::string policy_of(const net::Request& request, const JobId& job) {
  std::string host(request.header("Host").value_or(""));
  const bool plain = std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ':' || c == '[' ||
           c == ']' || c == '_';
  });
  if (!plain) host.clear();
  const std::string self = fmt::format("http://{}{}", host, base_of(job));
  // Frames may show Grafana, wherever it is; our own pages do not let themselves be framed.
  return fmt::format(
      "default-src {} data: blob: 'unsafe-inline' 'unsafe-eval'; connect-src {} ws://{}{}; frame-src http: https:; form-action {}; "
      "base-uri {}; frame-ancestors 'none'; object-src 'none'; worker-src 'none'",
      self, self, host, base_of(job), self, self);
}

struct Wanted {
  JobId job;
  std::vector<std::string> segments;
  DashboardUse use = DashboardUse::act;
};

Result<Wanted> wanted_of(const net::Request& request) {
  Wanted out;
  out.job = JobId(request.params.at("id"));
  HELIO_TRY(segments, segments_below(request));
  out.segments = std::move(segments);
  // What opens a page must not be sent on to a cluster.
  if (request.query.contains("link")) return fail(ErrorCode::invalid_argument, "a link opens at {} and with GET", base_of(out.job));
  out.use = service::dashboard_use(request.method, out.segments);
  return out;
}

/// May this visitor do that to this job?
Result<void> check(const Wanted& wanted, const Visitor& visitor, const Dashboard& dashboard, const net::Request& request) {
  const auth::Identity& who = visitor.identity.who;
  HELIO_CHECK_OK(auth::authorise(who.role, Verb::see, Kind::job));
  if (wanted.use == DashboardUse::look) return {};
  if (wanted.use == DashboardUse::jobs) {
    return fail(
        ErrorCode::permission_denied,
        "jobs are not submitted, stopped or deleted through a dashboard, where heliostat would not know of them: use helio, /v1/jobs, "
        "or Ray's Jobs API at /ray/default");
  }
  if (visitor.identity.read_only)
    return fail(ErrorCode::permission_denied, "this link only looks; `helio dashboard {}` of its owner makes one that acts",
                wanted.job.value);
  HELIO_CHECK_OK(auth::authorise(who.role, Verb::exec, Kind::job, who.principal == dashboard.owner ? Ownership::own : Ownership::others));
  if (visitor.by_cookie && !comes_from_here(request)) return fail(ErrorCode::permission_denied, "this request was made by another site");
  return {};
}

std::unique_ptr<net::Forward> forward_to(const Wanted& wanted, const Dashboard& dashboard, const net::Request& request) {
  auto out = forward_to_cluster(dashboard, request, wanted.segments, wanted.use == DashboardUse::look ? ClusterUse::look : ClusterUse::act);
  out->location_base = base_of(wanted.job);
  out->add.emplace_back("Content-Security-Policy", policy_of(request, wanted.job));
  out->add.emplace_back("Referrer-Policy", "same-origin");
  // Headers by which an answer speaks for the whole origin, or asks for a password in our name.
  out->drop = {"Set-Cookie",
               "Content-Security-Policy",
               "Content-Security-Policy-Report-Only",
               "Referrer-Policy",
               "Service-Worker-Allowed",
               "Clear-Site-Data",
               "Refresh",
               "WWW-Authenticate",
               "Alt-Svc",
               "Strict-Transport-Security",
               "Access-Control-Allow-Origin",
               "Access-Control-Allow-Credentials",
               "X-Content-Type-Options"};
  return out;
}

/// Ray's page asks whether it needs a token: not here.
std::optional<net::Response> answered_here(const Wanted& wanted) {
  const auto& path = wanted.segments;
  if (wanted.use != DashboardUse::look || path.size() != 2 || path[0] != "api" || path[1] != "authentication_mode") return std::nullopt;
  return net::Response::json(200, R"({"authentication_mode":"disabled"})");
}

std::shared_ptr<net::Cord> tie_to(Context& context, const Visitor& visitor) {
  return tie(context, visitor.identity.who.token, visitor.identity.session);
}

net::Response enter(Context& context, const Wanted& wanted, const Visitor& visitor, const Dashboard& dashboard,
                    const net::Request& request) {
  if (auto may = check(wanted, visitor, dashboard, request); !may) return refuse(request, may.error());
  if (auto here = answered_here(wanted)) return std::move(*here);
  net::Response out;
  out.forward = forward_to(wanted, dashboard, request);
  out.cord = tie_to(context, visitor);
  return out;
}

/// Somebody may see the job, but there is no dashboard now.
net::Response not_there(Context& context, const Wanted& wanted, const Dashboard& dashboard, const net::Request& request) {
  const bool zh = language_of(request) == Language::zh;
  if (dashboard.ended) {
    if (!wants_page(request)) {
      return refuse(request, Error(ErrorCode::not_found, "the cluster of this job is gone; its record is at " + base_of(wanted.job)), 410);
    }
    auto page = kept_record(context, wanted.job, request);
    return page ? std::move(*page) : refuse(request, page.error());
  }
  if (!wants_page(request)) return refuse(request, Error(ErrorCode::unavailable, "the cluster of this job is not up"));
  auto job = context.jobs.get(wanted.job);
  if (!job) return refuse(request, job.error());
  constexpr int kLookAgain = 3;
  return show({503, language_of(request), zh ? "尚未就绪" : "Not ready yet",
               fmt::format("<h1>{}</h1><p>{}: {}</p><p class=\"dim\">{}</p>", zh ? "集群尚未就绪" : "The cluster is not up yet",
                           json::enum_name(job->state), escape_html(job->reason),
                           zh ? "就绪后本页会自动打开仪表盘。" : "This page opens the dashboard as soon as it is."),
               kLookAgain});
}

/// "?link=…": opens once, then the address without it.
net::Response open_link(Context& context, const net::Request& request, const std::string& secret) {
  auto made = context.sessions.open_link(secret);
  if (!made) return refuse(request, made.error());
  const JobId job = made->session.job.value_or(JobId());
  net::Response out;
  out.status = 303;
  out.headers.emplace_back("Location", base_of(job));
  out.headers.emplace_back("Cache-Control", "no-store");
  out.headers.emplace_back("Referrer-Policy", "no-referrer");
  out.headers.emplace_back("Set-Cookie", set_session_cookie(request, made->secret, "/jobs/" + job.value + "/", auth::kSessionLife));
  return out;
}

net::Response serve(Context& context, net::Request& request) {
  const auto link = request.query.find("link");
  if (link != request.query.end() && request.method == "GET" && request.params.at("rest").empty()) {
    return open_link(context, request, link->second);
  }
  auto wanted = wanted_of(request);
  if (!wanted) return refuse(request, wanted.error());
  auto visitor = visitor_of(context, request, wanted->job);
  if (!visitor) return refuse(request, visitor.error());
  if (!*visitor) return ask_to_log_in(request);
  auto dashboard = context.dashboards.get(wanted->job);
  if (!dashboard) return refuse(request, dashboard.error());
  if ((*dashboard)->state == Dashboard::State::live) return enter(context, *wanted, **visitor, **dashboard, request);
  if (auto may = auth::authorise((*visitor)->identity.who.role, Verb::see, Kind::job); !may) return refuse(request, may.error());
  return not_there(context, *wanted, **dashboard, request);
}

/// Before a body is taken in: what does not depend on it.
std::optional<net::Response> admit(Context& context, net::Request& request) {
  net::Response response = serve(context, request);
  return response.forward ? std::nullopt : std::optional(std::move(response));
}

/// Everything that is known already, on the loop.
std::optional<net::Response> quick(Context& context, net::Request& request) {
  if (request.query.contains("link")) return std::nullopt;
  auto wanted = wanted_of(request);
  if (!wanted) return std::nullopt;
  const auto dashboard = context.dashboards.known(wanted->job);
  if (!dashboard || dashboard->state != Dashboard::State::live) return std::nullopt;
  const auto visitor = known_visitor(context, request, *dashboard);
  if (!visitor) return std::nullopt;
  return enter(context, *wanted, *visitor, *dashboard, request);
}

net::WsAccept upgrade(Context& context, net::Request& request) {
  net::WsAccept out;
  net::Response response = serve(context, request);
  // A page of another site may open a websocket here, and the browser would show our cookie.
  const bool foreign = response.forward && request.header("Origin") && !comes_from_here(request) && token_of(request).empty();
  if (foreign) {
    out.refuse = refuse(request, Error(ErrorCode::permission_denied, "this request was made by another site"));
  } else if (response.forward) {
    out.forward = std::move(response.forward);
    out.cord = std::move(response.cord);
  } else {
    out.refuse = std::move(response);
  }
  return out;
}

net::Response add_slash(const net::Request& request) {
  net::Response out;
  out.status = 308;
  const std::size_t question = request.target.find('?');
  const std::string query = question == std::string::npos ? std::string() : request.target.substr(question);
  out.headers.emplace_back("Location", base_of(JobId(net::url_encode(request.params.at("id")))) + query);
  return out;
}

/// /clusters/{cluster}/dashboard: by its name, whichever job has it now.
net::Response by_name(Context& context, const net::Request& request) {
  auto visitor = visitor_of(context, request, std::nullopt);
  if (!visitor) return refuse(request, visitor.error());
  if (!*visitor) return ask_to_log_in(request);
  auto job = context.jobs.cluster((*visitor)->identity.who.scope, "default", request.params.at("cluster"));
  if (!job) return refuse(request, job.error());
  net::Response out;
  out.status = 303;
  out.headers.emplace_back("Location", base_of(*job));
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

/// The whole log of the entrypoint, as text.
net::Response log_of(Context& context, net::Request& request) {
  const JobId job(request.params.at("id"));
  auto visitor = visitor_of(context, request, job);
  if (!visitor) return refuse(request, visitor.error());
  if (!*visitor) return ask_to_log_in(request);
  if (auto may = auth::authorise((*visitor)->identity.who.role, Verb::see, Kind::log); !may) return refuse(request, may.error());
  auto out = log_text(context, job, {});
  if (!out) return refuse(request, out.error());
  out->cord = tie_to(context, **visitor);
  return std::move(*out);
}

Result<net::Response> create_link(Context& context, Call& call) {
  DashboardLinkInput input;
  if (!call.request.body.empty()) {
    HELIO_TRY(given, call.body<DashboardLinkInput>());
    input = given;
  }
  HELIO_TRY(job, context.jobs.get(call.job()));
  const auth::Identity who{call.caller.token, call.caller.principal, call.caller.role};
  HELIO_TRY(made, context.sessions.make_link(who, job.id, input.read_only));
  net::Response out = reply(DashboardLinkView{base_of(job.id) + "?link=" + made.secret, made.session.expires, input.read_only}, 201);
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

}  // namespace

void add_dashboard_routes(Routes& routes) {
  routes.push_back({"POST",
                    "/v1/jobs/{id}/dashboard-links",
                    "createDashboardLink",
                    "Make a link that opens the dashboard of a job once, as its maker sees it",
                    Access{Verb::see, Kind::job},
                    {},
                    schema_of<DashboardLinkInput>,
                    201,
                    schema_of<DashboardLinkView>,
                    "application/json",
                    false,
                    create_link});
}

void mount_dashboard(net::Router& router, Context& context) {
  net::RouteOptions options;
  options.body_limit = kBodyLimit;
  options.admit = [&context](net::Request& request) { return admit(context, request); };
  options.quick = [&context](net::Request& request) { return quick(context, request); };
  for (const std::string_view method : kMethods) {
    router.add(std::string(method), "/jobs/{id}/dashboard/{rest...}", options,
               [&context](net::Request& request) { return serve(context, request); });
  }
  router.add_websocket("/jobs/{id}/dashboard/{rest...}", [&context](net::Request& request) { return upgrade(context, request); });
  router.add("GET", "/jobs/{id}/dashboard", {}, [](net::Request& request) { return add_slash(request); });
  for (const std::string_view path : {"/clusters/{cluster}/dashboard", "/clusters/{cluster}/dashboard/{rest...}"}) {
    router.add("GET", std::string(path), {}, [&context](net::Request& request) { return by_name(context, request); });
  }
  router.add("GET", "/jobs/{id}/log", {}, [&context](net::Request& request) { return log_of(context, request); });
}

void mount_browser(net::Router& router, Context& context) {
  mount_login(router, context);
  mount_dashboard(router, context);
}

}  // namespace helio::api
