#include "api/ray_front.h"

#include "api/ray_tail.h"
#include "api/tie.h"
#include "api/visitor.h"
#include "base/log.h"
#include "base/utf8.h"
#include "service/scope.h"

#include <algorithm>
#include <array>
#include <expected>
#include <memory>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Ownership;
using auth::Verb;
using service::RayJob;

/// Ray's Jobs API as of 2.60: 1 log streaming, 2 submission ids, 3 resources of entrypoints, 4 DELETE.
constexpr std::string_view kApiVersion = "4";
constexpr std::string_view kWorkspace = "default";

struct Refusal {
  int status = 500;
  std::string text;
  std::string retry_after{};  ///< seconds
};
using Reply = std::expected<net::Response, Refusal>;

std::unexpected<Refusal> refuse(int status, std::string text) { return std::unexpected(Refusal{status, std::move(text)}); }

/// Field names as Ray's clients know them, not as they stand in a JobSpec.
std::string text_of(const Error& error) {
  std::string path = error.path();
  if (path.starts_with("$.")) path.erase(0, 2);
  if (path == "entrypoint.command") path = "entrypoint";
  return path.empty() ? error.message() : path + ": " + error.message();
}

int status_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::permission_denied:
      return 403;
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:  // an image, a flavor or a package that the request names
    case ErrorCode::resource_exhausted:
      return 400;
    case ErrorCode::storage_full:
      return 507;
    case ErrorCode::unavailable:
      return 503;
    default:
      return 500;
  }
}

std::unexpected<Refusal> refuse(const Error& error) { return refuse(status_of(error), text_of(error)); }

net::Response plain(const Refusal& refusal) {
  net::Response out = net::Response::text(refusal.status, refusal.text);
  if (refusal.status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"heliostat\"");
  if (!refusal.retry_after.empty()) out.headers.emplace_back("Retry-After", refusal.retry_after);
  return out;
}

net::Response document(const json::Value& value) { return net::Response::json(200, json::dump(value)); }

// --- who calls ------------------------------------------------------------------------------------------------------------------

std::expected<service::Caller, Refusal> admit(Context& context, const net::Request& request, Verb verb, Kind kind) {
  const std::string token = token_of(request);
  if (token.empty()) {
    return refuse(401,
                  "a token is needed: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (Ray 2.52 and later), or RAY_JOB_HEADERS="
                  "'{\"Authorization\": \"Bearer TOKEN\"}' (every Ray); `helio login --env` prints the lines");
  }
  auto identity = context.tokens.authenticate(token, machine_of(request.peer));
  if (!identity) {
    Refusal refusal = refuse(identity.error()).error();
    for (const auto& [key, value] : identity.error().args()) {
      if (key != "retry_after") continue;
      refusal.status = 429;
      refusal.retry_after = value;
    }
    return std::unexpected(std::move(refusal));
  }
  // What a role may do at all; whose a job is, is asked when the job is known.
  if (auto may = auth::authorise(identity->role, verb, kind, Ownership::own); !may) return refuse(may.error());
  // Before anything is looked for: what lies in a workspace that is not the caller's tells nothing, not even by its time.
  if (auto there = service::check_workspace(identity->scope, request.params.at("workspace")); !there) {
    return refuse(404, there.error().message());
  }
  return service::Caller{std::move(identity->principal), identity->role, std::move(identity->token), std::move(identity->scope)};
}

std::expected<RayJob, Refusal> find(Context& context, const net::Request& request) {
  const std::string& id = request.params.at("id");
  auto job = context.ray_jobs.get(std::string(kWorkspace), id);
  if (!job && job.error().code() == ErrorCode::not_found) return refuse(404, fmt::format("Job {} does not exist", id));
  if (!job) return refuse(job.error());
  return std::move(*job);
}

std::optional<Refusal> owner_only(const service::Caller& caller, const RayJob& job, Verb verb) {
  const auto ownership = job.job.owner == caller.principal ? Ownership::own : Ownership::others;
  if (auto may = auth::authorise(caller.role, verb, Kind::job, ownership); !may) return Refusal{403, may.error().message()};
  return std::nullopt;
}

// --- version, packages ----------------------------------------------------------------------------------------------------------

Reply version(Context& context, net::Request& request, const service::Caller&) {
  auto image = context.images.get(context.settings.jobs_api.image);
  if (!image) return refuse(503, "no image '" + context.settings.jobs_api.image + "' yet: helio image add");
  return document(json::Object{{"version", kApiVersion},
                               {"ray_version", image->ray_version},
                               {"ray_commit", "heliostat-" + context.version},
                               {"session_name", request.params.at("workspace")}});
}

std::optional<Refusal> wrong_protocol(const net::Request& request) {
  if (request.params.at("protocol") == "gcs") return std::nullopt;
  return Refusal{500, fmt::format("Unsupported protocol {}", request.params.at("protocol"))};
}

Reply get_package(Context& context, net::Request& request, const service::Caller&) {
  if (auto bad = wrong_protocol(request)) return std::unexpected(*bad);
  const std::string& name = request.params.at("name");
  auto found = context.ray_jobs.has_package(std::string(kWorkspace), name);
  if (!found) return refuse(found.error());
  if (!*found) return refuse(404, fmt::format("Package gcs://{} does not exist", name));
  return net::Response::text(200, "");
}

Reply put_package(Context& context, net::Request& request, const service::Caller& caller) {
  if (auto bad = wrong_protocol(request)) return std::unexpected(*bad);
  const std::string& name = request.params.at("name");
  if (!name.ends_with(".zip")) {
    return refuse(400, fmt::format("{}: this server takes packages as .zip only; give wheels and tar archives by URL", name));
  }
  if (request.body_file.empty()) return refuse(400, "a zip file is expected as body");
  if (auto put = context.ray_jobs.put_package(caller, std::string(kWorkspace), name, request.body_file); !put) {
    if (put.error().code() == ErrorCode::resource_exhausted) return refuse(413, put.error().message());
    return refuse(put.error());
  }
  return net::Response::text(200, "");
}

// --- submit ---------------------------------------------------------------------------------------------------------------------

/// Takes members out of a body one by one; what is left at the end is unknown.
class Body {
 public:
  explicit Body(json::Object object) : object_(std::move(object)) {}

  const json::Value* take(std::string_view name) {
    const json::Value* found = object_.if_contains(name);
    if (found != nullptr) taken_.emplace_back(name);
    return found != nullptr && found->is_null() ? nullptr : found;  // Ray drops nulls first
  }
  std::expected<std::optional<std::string>, Refusal> text(std::string_view name) {
    const json::Value* value = take(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) return refuse(400, fmt::format("{} must be a string, got {}", name, json::dump(*value)));
    return std::string(value->get_string());
  }
  std::expected<double, Refusal> number(std::string_view name, bool whole) {
    const json::Value* value = take(name);
    if (value == nullptr) return 0.0;
    const bool integer = value->is_int64() || value->is_uint64();
    if (!value->is_number() || (whole && !integer)) {
      return refuse(400, fmt::format("{} must be {}, got {}", name, whole ? "an integer" : "a number", json::dump(*value)));
    }
    const auto number = value->to_number<double>();
    if (number < 0) return refuse(400, fmt::format("{} must not be negative, got {}", name, json::dump(*value)));
    return number;
  }
  /// The first member that nobody has asked for.
  std::optional<std::string> rest() const {
    for (const auto& member : object_) {
      if (std::ranges::find(taken_, std::string_view(member.key())) == taken_.end()) return std::string(member.key());
    }
    return std::nullopt;
  }

 private:
  json::Object object_;
  std::vector<std::string> taken_;
};

template <class T>
bool give(std::expected<T, Refusal>&& from, T& to, std::optional<Refusal>& refusal) {
  if (!from) {
    refusal = std::move(from.error());
    return false;
  }
  to = std::move(*from);
  return true;
}

std::expected<service::RaySubmit, Refusal> read_submit(const net::Request& request, const model::JobsApiSettings& defaults) {
  auto value = json::parse(request.body);
  if (!value) return refuse(400, value.error().message());
  if (!value->is_object()) return refuse(400, "the body must be a JSON object");
  Body body(value->get_object());
  service::RaySubmit out;
  out.workspace = kWorkspace;
  std::optional<Refusal> bad;
  std::optional<std::string> entrypoint;
  std::optional<std::string> old_id;
  double memory = 0;
  const bool read = give(body.text("entrypoint"), entrypoint, bad) && give(body.text("submission_id"), out.submission_id, bad) &&
                    give(body.text("job_id"), old_id, bad) &&
                    give(body.number("entrypoint_num_cpus", false), out.resources.num_cpus, bad) &&
                    give(body.number("entrypoint_num_gpus", false), out.resources.num_gpus, bad) &&
                    give(body.number("entrypoint_memory", true), memory, bad);
  if (!read) return std::unexpected(*bad);
  if (!entrypoint) return refuse(400, "entrypoint must be a string, got null");
  out.entrypoint = std::move(*entrypoint);
  out.resources.memory = Bytes{static_cast<std::int64_t>(memory)};
  if (!out.submission_id) out.submission_id = std::move(old_id);
  if (const json::Value* env = body.take("runtime_env")) {
    if (!env->is_object()) return refuse(400, "runtime_env must be a dict, got " + json::dump(*env));
    out.runtime_env = env->get_object();
  }
  if (const json::Value* metadata = body.take("metadata")) {
    if (!metadata->is_object()) return refuse(400, "metadata must be a dict, got " + json::dump(*metadata));
    for (const auto& member : metadata->get_object()) {
      if (!member.value().is_string()) {
        return refuse(400, fmt::format("metadata values must be strings, got {} for '{}'", json::dump(member.value()),
                                       std::string_view(member.key())));
      }
      out.metadata[std::string(member.key())] = std::string(member.value().get_string());
    }
  }
  if (const json::Value* resources = body.take("entrypoint_resources")) {
    if (!resources->is_object()) return refuse(400, "entrypoint_resources must be a dict, got " + json::dump(*resources));
    for (const auto& member : resources->get_object()) {
      if (!member.value().is_number()) {
        return refuse(400, fmt::format("entrypoint_resources values must be numbers, got {}", json::dump(member.value())));
      }
      out.resources.resources[std::string(member.key())] = member.value().to_number<double>();
    }
  }
  if (const json::Value* selector = body.take("entrypoint_label_selector"); selector != nullptr) {
    const auto* object = selector->if_object();
    if (object == nullptr || !object->empty())
      return refuse(400, "entrypoint_label_selector is not supported here; give resources instead");
  }
  if (const auto unknown = body.rest()) {
    return refuse(400, fmt::format("got an unexpected keyword argument '{}'", *unknown));
  }

  out.shape["image"] = defaults.image;
  if (defaults.workers > 0) out.shape["workers"] = std::to_string(defaults.workers);
  if (defaults.worker_flavor) out.shape["flavor"] = *defaults.worker_flavor;
  if (defaults.head_flavor) out.shape["head-flavor"] = *defaults.head_flavor;
  for (const std::string_view name : {"workers", "flavor", "head-flavor", "image", "name", "priority", "queue"}) {
    if (const auto header = request.header("X-Heliostat-" + std::string(name))) out.shape[std::string(name)] = std::string(*header);
  }
  return out;
}

Reply submit(Context& context, net::Request& request, const service::Caller& caller) {
  auto read = read_submit(request, context.settings.jobs_api);
  if (!read) return std::unexpected(std::move(read.error()));
  auto id = context.ray_jobs.submit(caller, *read);
  if (!id && id.error().code() == ErrorCode::already_exists) {
    return refuse(500,
                  fmt::format("Job with submission_id {} already exists. Please use a different submission_id.", *read->submission_id));
  }
  if (!id) return refuse(id.error());
  return document(json::Object{{"job_id", *id}, {"submission_id", *id}});
}

// --- what there is --------------------------------------------------------------------------------------------------------------

std::int64_t milliseconds(Timestamp at) { return at.us / 1000; }

/// All of Ray's keys are always there.
json::Value details(const RayJob& ray) {
  json::Object metadata;
  for (const auto& [key, value] : ray.submission.metadata) metadata[key] = value;
  json::Object out{{"type", "SUBMISSION"},
                   {"job_id", nullptr},
                   {"submission_id", ray.submission.submission_id},
                   {"driver_info", nullptr},
                   {"status", service::ray_status(ray)},
                   {"entrypoint", ray.submission.entrypoint},
                   {"message", service::ray_message(ray)},
                   {"error_type", nullptr},
                   {"start_time", milliseconds(ray.submission.created)},
                   {"end_time", nullptr},
                   {"metadata", std::move(metadata)},
                   {"runtime_env", ray.submission.runtime_env.value_or(json::Object{})},
                   {"driver_agent_http_address", nullptr},
                   {"driver_node_id", nullptr},
                   {"driver_exit_code", nullptr}};
  if (const std::string type = service::ray_error_type(ray.job); !type.empty()) out["error_type"] = type;
  if (ray.job.finished) out["end_time"] = milliseconds(*ray.job.finished);
  if (ray.job.exit_code) out["driver_exit_code"] = *ray.job.exit_code;
  return out;
}

Reply list(Context& context, net::Request&, const service::Caller&) {
  auto jobs = context.ray_jobs.list(std::string(kWorkspace));
  if (!jobs) return refuse(jobs.error());
  json::Array out;
  out.reserve(jobs->size());
  for (const RayJob& job : *jobs) out.push_back(details(job));
  return document(out);
}

Reply info(Context& context, net::Request& request, const service::Caller&) {
  auto job = find(context, request);
  if (!job) return std::unexpected(std::move(job.error()));
  return document(details(*job));
}

Reply stop(Context& context, net::Request& request, const service::Caller& caller) {
  auto job = find(context, request);
  if (!job) return std::unexpected(std::move(job.error()));
  if (auto refused = owner_only(caller, *job, Verb::stop)) return std::unexpected(*refused);
  auto stopped = context.ray_jobs.stop(caller, *job);
  if (!stopped) return refuse(stopped.error());
  return document(json::Object{{"stopped", *stopped}});
}

Reply remove(Context& context, net::Request& request, const service::Caller& caller) {
  auto job = find(context, request);
  if (!job) return std::unexpected(std::move(job.error()));
  if (auto refused = owner_only(caller, *job, Verb::remove)) return std::unexpected(*refused);
  if (!model::is_terminal(job->job.state)) {
    return refuse(500, fmt::format("Attempted to delete job '{}', but it is in a non-terminal state {}.", job->submission.submission_id,
                                   service::ray_status(*job)));
  }
  if (auto removed = context.ray_jobs.remove(caller, *job); !removed) return refuse(500, removed.error().message());
  return document(json::Object{{"deleted", true}});
}

/// {"logs": "…"} piece by piece, for logs of any size.
class LogsDocument final : public net::BodySource {
 public:
  explicit LogsDocument(std::unique_ptr<service::LogReader> reader) : reader_(std::move(reader)) {}

  Piece next() override {
    if (ended_) return {Piece::Kind::end, {}};
    Piece piece;
    piece.kind = Piece::Kind::data;
    if (!std::exchange(begun_, true)) {
      piece.bytes = "{\"logs\": \"";
      return piece;
    }
    auto state = reader_->next(held_);
    if (!state) {
      log::warn("reading a log: {}", state.error().text());
      return {Piece::Kind::failed, {}};
    }
    ended_ = *state == service::LogReader::State::end;
    if (!ended_ && *state == service::LogReader::State::pending) return {Piece::Kind::pending, {}};
    const std::string text = take_whole_characters(held_, ended_);
    const std::string quoted = json::dump(json::Value(text));
    piece.bytes = quoted.substr(1, quoted.size() - 2);
    if (ended_) piece.bytes += "\"}";
    return piece;
  }
  void set_waker(std::function<void()> waker) override { reader_->set_waker(std::move(waker)); }

 private:
  std::unique_ptr<service::LogReader> reader_;
  std::string held_;
  bool begun_ = false;
  bool ended_ = false;
};

Reply logs(Context& context, net::Request& request, const service::Caller&) {
  auto job = find(context, request);
  if (!job) return std::unexpected(std::move(job.error()));
  auto reader = context.logs.open(job->job.id, {});
  if (!reader) return refuse(reader.error());
  net::Response out;
  out.headers.emplace_back("Content-Type", "application/json");
  out.source = std::make_unique<LogsDocument>(std::move(*reader));
  return out;
}

net::WsAccept tail(Context& context, net::Request& request) {
  net::WsAccept out;
  const auto caller = admit(context, request, Verb::see, Kind::log);
  if (!caller) {
    out.refuse = plain(caller.error());
    return out;
  }
  auto job = find(context, request);
  if (!job) {
    out.refuse = plain(job.error());
    return out;
  }
  service::LogQuery query;
  query.follow = true;
  auto reader = context.logs.open(job->job.id, query);
  if (!reader) {
    out.refuse = plain(refuse(reader.error()).error());
    return out;
  }
  // A clean close means to every client that the job is over.
  out.cut_on_stop = true;
  out.cord = tie(context, caller->token);
  out.open = [&context, held = std::make_shared<std::unique_ptr<service::LogReader>>(std::move(*reader))](
                 std::shared_ptr<net::WsSession> session) { return tail_log(std::move(session), std::move(*held), context.tails); };
  return out;
}

using Handle = Reply (*)(Context&, net::Request&, const service::Caller&);

struct RayRoute {
  std::string_view method;
  std::string_view path;  ///< below /ray/{workspace}
  Verb verb;
  Kind kind;
  Handle handle;
  bool spool = false;
};

constexpr std::array kRoutes{
    RayRoute{"GET", "/api/version", Verb::see, Kind::job, version},
    RayRoute{"GET", "/api/ray/version", Verb::see, Kind::job, version},
    RayRoute{"GET", "/api/packages/{protocol}/{name}", Verb::see, Kind::package, get_package},
    RayRoute{"PUT", "/api/packages/{protocol}/{name}", Verb::create, Kind::package, put_package, true},
    RayRoute{"POST", "/api/jobs/", Verb::create, Kind::job, submit},
    RayRoute{"POST", "/api/jobs", Verb::create, Kind::job, submit},  // Ray has no such path, and a redirected POST would lose its body
    RayRoute{"GET", "/api/jobs/", Verb::see, Kind::job, list},
    RayRoute{"GET", "/api/jobs", Verb::see, Kind::job, list},
    RayRoute{"GET", "/api/jobs/{id}", Verb::see, Kind::job, info},
    RayRoute{"POST", "/api/jobs/{id}/stop", Verb::stop, Kind::job, stop},
    RayRoute{"DELETE", "/api/jobs/{id}", Verb::remove, Kind::job, remove},
    RayRoute{"GET", "/api/jobs/{id}/logs", Verb::see, Kind::log, logs},
};

}  // namespace

std::expected<service::Caller, net::Response> ray_caller(Context& context, const net::Request& request, Verb verb, Kind kind) {
  auto caller = admit(context, request, verb, kind);
  if (!caller) return std::unexpected(plain(caller.error()));
  return std::move(*caller);
}

net::Response ray_refusal(const Error& error, int status) { return plain({status, text_of(error)}); }

void mount_ray_front(net::Router& router, Context& context) {
  for (const RayRoute& route : kRoutes) {
    net::RouteOptions options;
    if (route.spool) {
      options.spool = true;
      options.body_limit = static_cast<std::size_t>(context.settings.server.package_limit.n);
    }
    if (route.method == "POST" || route.method == "PUT") {
      options.admit = [&context, &route](net::Request& request) -> std::optional<net::Response> {
        const auto caller = admit(context, request, route.verb, route.kind);
        return caller ? std::nullopt : std::optional(plain(caller.error()));
      };
    }
    router.add(std::string(route.method), "/ray/{workspace}" + std::string(route.path), options, [&context, &route](net::Request& request) {
      const auto caller = admit(context, request, route.verb, route.kind);
      if (!caller) return plain(caller.error());
      auto reply = route.handle(context, request, *caller);
      if (!reply) return plain(reply.error());
      if (reply->source) reply->cord = tie(context, caller->token);
      return std::move(*reply);
    });
  }
  mount_cluster_jobs(router, context);
  router.add_websocket("/ray/{workspace}/api/jobs/{id}/logs/tail", [&context](net::Request& request) { return tail(context, request); });
}

}  // namespace helio::api
