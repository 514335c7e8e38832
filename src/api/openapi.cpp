#include "api/openapi.h"

#include "api/route.h"
#include "model/states.h"

#include <algorithm>
#include <cctype>

namespace helio::api {
namespace {

json::Value type_schema(Type type) {
  switch (type) {
    case Type::text:
      break;
    case Type::integer:
      return json::Object{{"type", "integer"}, {"format", "int64"}};
    case Type::boolean:
      return json::Object{{"type", "boolean"}};
    case Type::time:
      return json::Object{{"type", "string"}, {"description", "a time such as 2026-01-31T12:00:00Z, or a duration such as 10m"}};
    case Type::duration:
      return json::Object{{"type", "string"}, {"description", "a duration such as 90s or 10m"}};
  }
  return json::Object{{"type", "string"}};
}

json::Value parameter(std::string_view name, std::string_view where, std::string_view about, json::Value schema, bool required) {
  json::Object out{{"name", name}, {"in", where}, {"schema", std::move(schema)}};
  if (!about.empty()) out["description"] = about;
  if (required) out["required"] = true;
  return out;
}

json::Array parameters_of(const Route& route) {
  json::Array out;
  for (std::size_t at = 0; (at = route.path.find('{', at)) != std::string_view::npos;) {
    const std::size_t end = route.path.find('}', at);
    out.push_back(parameter(route.path.substr(at + 1, end - at - 1), "path", {}, json::Object{{"type", "string"}}, true));
    at = end;
  }
  for (const Parameter& p : route.parameters) {
    out.push_back(parameter(p.name, p.where == Where::header ? "header" : "query", p.about, type_schema(p.type), false));
  }
  return out;
}

json::Value content(std::string_view media, json::Value schema) {
  return json::Object{{media, json::Object{{"schema", std::move(schema)}}}};
}

json::Object replies_of(const Route& route, json::Schemas& schemas) {
  json::Object ok{{"description", route.status == 204 ? "done" : "success"}};
  if (route.reply != nullptr) {
    ok["content"] = content(route.media, route.reply(schemas));
  } else if (!route.media.empty()) {
    ok["content"] = content(route.media, json::Object{{"type", "string"}});
  }
  json::Object problem{{"description", "problem document (RFC 9457)"},
                       {"content", content("application/problem+json", json::Codec<ProblemView>::schema(schemas))}};
  return json::Object{{std::to_string(route.status), std::move(ok)}, {"default", std::move(problem)}};
}

/// "/v1/jobs/{id}/logs" -> "jobs"
std::string tag_of(std::string_view path) {
  path.remove_prefix(std::min(path.size(), std::string_view("/v1/").size()));
  return std::string(path.substr(0, path.find_first_of("/:.")));
}

}  // namespace

std::string openapi_text(std::string_view version) {
  json::Schemas schemas;
  json::Object paths;
  for (const Route& route : all_routes()) {
    json::Object operation{
        {"operationId", route.operation}, {"summary", route.summary}, {"tags", json::Array{json::Value(tag_of(route.path))}}};
    if (json::Array parameters = parameters_of(route); !parameters.empty()) operation["parameters"] = std::move(parameters);
    if (route.body != nullptr) {
      operation["requestBody"] = json::Object{{"required", true}, {"content", content("application/json", route.body(schemas))}};
    } else if (route.spool) {
      operation["requestBody"] =
          json::Object{{"required", true}, {"content", content("application/zip", json::Object{{"type", "string"}, {"format", "binary"}})}};
    }
    operation["responses"] = replies_of(route, schemas);
    if (!route.access) {
      operation["security"] = json::Array{};
    } else {
      operation["x-authorise"] = json::Object{{"verb", auth::to_string(route.access->verb)}, {"kind", auth::to_string(route.access->kind)}};
    }
    std::string method(route.method);
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    auto& item = paths[route.path];
    if (!item.is_object()) item = json::Object{};
    item.get_object()[method] = std::move(operation);
  }
  json::Object named;
  for (auto& [name, schema] : schemas) named[name] = std::move(schema);
  json::Object bearer{{"type", "http"}, {"scheme", "bearer"}};
  json::Object document{
      {"openapi", "3.1.0"},
      {"info",
       json::Object{
           {"title", "heliostat"}, {"version", version}, {"license", json::Object{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"security", json::Array{json::Object{{"bearer", json::Array{}}}}},
      {"paths", std::move(paths)},
      {"components", json::Object{{"securitySchemes", json::Object{{"bearer", std::move(bearer)}}}, {"schemas", std::move(named)}}}};
  return json::dump_pretty(document) + "\n";
}

}  // namespace helio::api
