#include "api/route.h"

#include "api/tie.h"
#include "api/visitor.h"
#include "base/log.h"

#include <memory>
#include <set>

namespace helio::api {
namespace {

constexpr std::size_t kLongestId = 200;

net::Response refuse(const Error& error) {
  net::Response out = net::problem(error);
  if (error.code() == ErrorCode::unauthenticated) out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"heliostat\"");
  if (error.code() == ErrorCode::internal) log::error("request failed: {}", error.text());
  for (const auto& [key, value] : error.args()) {
    if (key == "retry_after") out.headers.emplace_back("Retry-After", value);
  }
  return out;
}

Result<service::Caller> authenticate(Context& context, const net::Request& request) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto header = request.header("Authorization");
  if (!header || !header->starts_with(kScheme) || header->size() == kScheme.size()) {
    return fail(ErrorCode::unauthenticated, "a token is needed: send the header 'Authorization: Bearer <token>'; the first token is in {}",
                context.home.admin_token());
  }
  HELIO_TRY(identity, context.tokens.authenticate(header->substr(kScheme.size()), machine_of(request.peer)));
  return service::Caller{std::move(identity.principal), identity.role, std::move(identity.token), std::move(identity.scope)};
}

/// Before the body is read: who calls, and may this role do such things at all?
Result<service::Caller> admit(Context& context, const Route& route, const net::Request& request) {
  if (!route.access) return service::Caller{};
  HELIO_TRY(caller, authenticate(context, request));
  const auto ownership = route.access->by_owner ? auth::Ownership::own : auth::Ownership::others;
  HELIO_CHECK_OK(auth::authorise(caller.role, route.access->verb, route.access->kind, ownership));
  return std::move(caller);
}

/// A long-lived cluster is a job: where its name stands, everything that follows works with the job's id.
Result<void> find_cluster(Context& context, const model::Scope& scope, net::Request& request) {
  const auto name = request.params.find("cluster");
  if (name == request.params.end()) return {};
  const auto workspace = request.query.find("workspace");
  HELIO_TRY(job, context.jobs.cluster(scope, workspace == request.query.end() ? "default" : workspace->second, name->second));
  request.params["id"] = job.value;
  return {};
}

/// The one place where the job in a route's path is looked for, so that no handler tells of one that its caller does not know of.
Result<void> check_known(Context& context, const Route& route, const Call& call) {
  if (!route.path.starts_with("/v1/jobs/{id}")) return {};
  return context.jobs.check_known(call.caller.scope, call.job());
}

/// And to this job?
Result<void> authorise_owner(Context& context, const Route& route, Call& call) {
  if (!route.access || !route.access->by_owner) return {};
  const auto& [verb, kind, by_owner] = *route.access;
  if (auth::may(call.caller.role, verb, kind, auth::Ownership::others)) return {};
  HELIO_TRY(job, context.jobs.get(call.job()));
  if (job.owner == call.caller.principal) return {};
  return auth::authorise(call.caller.role, verb, kind, auth::Ownership::others);
}

/// Ids that no resource can have are not found, before anything looks for them.
Result<void> check_params(const net::Request& request) {
  for (const auto& [name, value] : request.params) {
    bool plain = !value.empty() && value.size() <= kLongestId;
    for (const char c : value) plain = plain && c > ' ' && c < 0x7f && c != '/';
    if (!plain) return fail(ErrorCode::not_found, "no resource has this {}", name);
  }
  return {};
}

Result<void> check_query(const Route& route, const net::Request& request) {
  for (const auto& [name, value] : request.query) {
    bool known = false;
    std::string names;
    for (const Parameter& p : route.parameters) {
      if (p.where != Where::query) continue;
      known = known || p.name == name;
      names += (names.empty() ? "" : ", ") + std::string(p.name);
    }
    if (!known) {
      const std::string hint = names.empty() ? "none is known here" : "known are " + names;
      return fail(Error(ErrorCode::invalid_argument, "unknown query parameter; " + hint).at("query." + name));
    }
  }
  return {};
}

/// A body that nothing reads would be a wish that nobody hears. `{}` and `null` are what some clients send for none.
Result<void> check_body(const Route& route, const net::Request& request) {
  if (route.body != nullptr || route.spool || request.body.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  const auto body = json::parse(request.body);
  const bool none = body && (body->is_null() || (body->is_object() && body->get_object().empty()));
  if (!none) return fail(Error(ErrorCode::invalid_argument, "this request takes no body").at("$"));
  return {};
}

Result<net::Response> serve(Context& context, const Route& route, net::Request& request) {
  HELIO_TRY(caller, admit(context, route, request));
  HELIO_CHECK_OK(check_params(request));
  HELIO_CHECK_OK(check_query(route, request));
  HELIO_CHECK_OK(check_body(route, request));
  HELIO_CHECK_OK(find_cluster(context, caller.scope, request));
  Call call(request, std::move(caller));
  HELIO_CHECK_OK(check_known(context, route, call));
  HELIO_CHECK_OK(authorise_owner(context, route, call));
  HELIO_TRY(response, route.handle(context, call));
  if (route.access && (response.source || response.tunnel)) response.cord = tie(context, call.caller.token);
  return std::move(response);
}

}  // namespace

void mount(net::Router& router, Context& context) {
  for (Route& found : all_routes()) {
    const auto route = std::make_shared<const Route>(std::move(found));
    net::RouteOptions options;
    if (route->spool) {
      options.spool = true;
      options.body_limit = static_cast<std::size_t>(context.settings.server.package_limit.n);
    }
    if (route->method == "POST" || route->method == "PUT") {
      // Whoever may not call does not get to send a body.
      options.admit = [&context, route](net::Request& request) -> std::optional<net::Response> {
        if (auto caller = admit(context, *route, request); !caller) return refuse(caller.error());
        return std::nullopt;
      };
    }
    router.add(std::string(route->method), std::string(route->path), options, [&context, route](net::Request& request) {
      auto response = serve(context, *route, request);
      return response ? std::move(*response) : refuse(response.error());
    });
  }
}

}  // namespace helio::api
