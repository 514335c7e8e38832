#pragma once
// One table of routes drives the router, authorisation, the OpenAPI document and the walk of the tests.

#include "api/dto.h"
#include "auth/authorise.h"
#include "auth/endings.h"
#include "auth/sessions.h"
#include "auth/tokens.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "link/hub.h"
#include "model/home.h"
#include "model/settings.h"
#include "net/server.h"
#include "service/caller.h"
#include "service/catalog.h"
#include "service/dashboards.h"
#include "service/feed.h"
#include "service/jobs.h"
#include "service/logs.h"
#include "service/packages.h"
#include "service/ray_clients.h"
#include "service/ray_jobs.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helio::api {

/// What handlers work with. Everything outlives the server.
struct Context {
  service::Jobs& jobs;
  service::Logs& logs;
  service::Images& images;
  service::Flavors& flavors;
  service::Packages& packages;
  service::RayJobs& ray_jobs;
  service::Dashboards& dashboards;
  service::RayClients& ray_clients;
  service::Feed& feed;
  link::Hub& hub;
  const model::Home& home;
  const model::Settings& settings;
  const Clock& clock;
  auth::Tokens& tokens;
  auth::Sessions& sessions;
  auth::Endings& endings;
  Executor& tails;  ///< reads for websockets that follow a log
  std::string version;
  std::function<Result<DaemonView>()> facts;
  std::function<void()> stop;  ///< asks the daemon to stop; returns at once
};

enum class Where { path, query, header };
enum class Type { text, integer, boolean, time, duration };

struct Parameter {
  std::string_view name;
  std::string_view about;
  Type type = Type::text;
  Where where = Where::query;
};

/// One request on its way: authenticated, authorised, its parameters known by name.
class Call {
 public:
  Call(net::Request& request_in, service::Caller caller_in) : request(request_in), caller(std::move(caller_in)) {}

  net::Request& request;
  service::Caller caller;

  [[nodiscard]] const std::string& param(const std::string& name) const { return request.params.at(name); }
  [[nodiscard]] JobId job() const { return JobId(param("id")); }
  // Query parameters; the error's path is "query.<name>".
  [[nodiscard]] std::string text(const std::string& name, std::string_view fallback = {}) const;
  [[nodiscard]] Result<std::int64_t> integer(const std::string& name, std::int64_t fallback, std::int64_t least, std::int64_t most) const;
  [[nodiscard]] Result<bool> boolean(const std::string& name) const;
  /// A time, or a duration that lies so far back.
  [[nodiscard]] Result<std::optional<Timestamp>> time(const std::string& name, Timestamp now) const;
  [[nodiscard]] Result<Duration> duration(const std::string& name, Duration fallback, Duration most) const;
  /// Key of `Idempotency-Key`, with the hash of the body. `route`: as it stands in the table.
  [[nodiscard]] Result<service::Idempotency> idempotency(std::string_view route) const;

  template <class T>
  [[nodiscard]] Result<T> body() const {
    if (request.body.empty()) return fail(Error(ErrorCode::invalid_argument, "a JSON document is expected as body").at("$"));
    return json::parse_as<T>(request.body);
  }
};

/// What a route needs of its caller.
struct Access {
  auth::Verb verb = auth::Verb::see;
  auth::Kind kind = auth::Kind::job;
  bool by_owner = false;  ///< of the job {id}: its owner and others need different roles
};

using SchemaFn = json::Value (*)(json::Schemas&);
using HandlerFn = Result<net::Response> (*)(Context&, Call&);

struct Route {
  std::string_view method;
  std::string_view path;  ///< with /v1; {name} parts
  std::string_view operation;
  std::string_view summary;
  std::optional<Access> access;       ///< nothing: open to everyone
  std::vector<Parameter> parameters;  ///< path parts are added by themselves
  SchemaFn body = nullptr;
  int status = 200;
  SchemaFn reply = nullptr;  ///< of JSON; empty with `media` for other types, or for no content
  std::string_view media = "application/json";
  bool spool = false;  ///< body is a file, of at most ServerSettings::package_limit
  HandlerFn handle = nullptr;
};

using Routes = std::vector<Route>;
/// Every route of the API.
Routes all_routes();

// One per resource.
void add_job_routes(Routes& routes);
void add_cluster_routes(Routes& routes);
void add_log_routes(Routes& routes);
void add_exec_routes(Routes& routes);
void add_file_routes(Routes& routes);
void add_event_routes(Routes& routes);
void add_catalog_routes(Routes& routes);
void add_pool_routes(Routes& routes);
void add_package_routes(Routes& routes);
void add_token_routes(Routes& routes);
void add_dashboard_routes(Routes& routes);
void add_ray_client_routes(Routes& routes);
void add_daemon_routes(Routes& routes);

/// The routes on a router of net/. `context` outlives it.
void mount(net::Router& router, Context& context);

// --- replies and their schemas ---------------------------------------------------------------------------------------------------

template <class T>
json::Value schema_of(json::Schemas& schemas) {
  return json::Codec<T>::schema(schemas);
}
json::Value list_schema(json::Value item);
template <class T>
json::Value schema_list_of(json::Schemas& schemas) {
  return list_schema(json::Codec<T>::schema(schemas));
}

template <class T>
net::Response reply(const T& document, int status = 200) {
  return net::Response::json(status, json::dump(json::encode(document)));
}
/// {"items": […], "next": cursor or nothing}
net::Response reply_list(json::Array items, const std::string& next = {});
template <class T>
json::Array encode_all(const std::vector<T>& items) {
  json::Array out;
  out.reserve(items.size());
  for (const T& item : items) out.push_back(json::encode(item));
  return out;
}
net::Response no_content();

}  // namespace helio::api
