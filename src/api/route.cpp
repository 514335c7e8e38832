#include "api/route.h"

#include "base/hash.h"

#include <charconv>

namespace helio::api {
namespace {

std::unexpected<Error> bad_query(const std::string& name, const std::string& message) {
  return fail(Error(ErrorCode::invalid_argument, message).at("query." + name));
}

}  // namespace

Routes all_routes() {
  Routes routes;
  add_job_routes(routes);
  add_cluster_routes(routes);
  add_log_routes(routes);
  add_exec_routes(routes);
  add_file_routes(routes);
  add_event_routes(routes);
  add_catalog_routes(routes);
  add_pool_routes(routes);
  add_package_routes(routes);
  add_token_routes(routes);
  add_dashboard_routes(routes);
  add_ray_client_routes(routes);
  add_daemon_routes(routes);
  return routes;
}

std::string Call::text(const std::string& name, std::string_view fallback) const {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string(fallback) : found->second;
}

Result<std::int64_t> Call::integer(const std::string& name, std::int64_t fallback, std::int64_t least, std::int64_t most) const {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return fallback;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return bad_query(name, fmt::format("expected an integer from {} to {}", least, most));
  }
  return value;
}

Result<bool> Call::boolean(const std::string& name) const {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return false;
  if (found->second == "true" || found->second == "1" || found->second.empty()) return true;
  if (found->second == "false" || found->second == "0") return false;
  return bad_query(name, "expected true or false");
}

Result<std::optional<Timestamp>> Call::time(const std::string& name, Timestamp now) const {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::optional<Timestamp>{};
  if (const auto at = parse_time(found->second)) return at;
  if (const auto ago = parse_duration(found->second)) return std::optional<Timestamp>(now - *ago);
  return bad_query(name, "expected a time such as 2026-01-31T12:00:00Z, or a duration such as 10m");
}

Result<Duration> Call::duration(const std::string& name, Duration fallback, Duration most) const {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return fallback;
  const auto value = parse_duration(found->second);
  if (!value || *value > most) return bad_query(name, fmt::format("expected a duration such as 30s, at most {}", format_duration(most)));
  return *value;
}

Result<service::Idempotency> Call::idempotency(std::string_view route) const {
  service::Idempotency out;
  const auto key = request.header("Idempotency-Key");
  if (!key) return out;
  bool printable = !key->empty() && key->size() <= 255;
  for (const char c : *key) printable = printable && c > ' ' && c < 0x7f;
  if (!printable) {
    return fail(Error(ErrorCode::invalid_argument, "expected 1 to 255 printable characters without spaces").at("header.Idempotency-Key"));
  }
  out.route = std::string(route);
  out.key = std::string(*key);
  out.body_hash = sha256_hex(request.path + "\n" + request.body);
  return out;
}

json::Value list_schema(json::Value item) {
  json::Object properties{{"items", json::Object{{"type", "array"}, {"items", std::move(item)}}},
                          {"next", json::Object{{"type", "string"}, {"description", "cursor of the next page; absent on the last"}}}};
  return json::Object{{"type", "object"}, {"required", json::Array{"items"}}, {"properties", std::move(properties)}};
}

net::Response reply_list(json::Array items, const std::string& next) {
  json::Object out{{"items", std::move(items)}};
  if (!next.empty()) out["next"] = next;
  return net::Response::json(200, json::dump(out));
}

net::Response no_content() {
  net::Response out;
  out.status = 204;
  return out;
}

}  // namespace helio::api
