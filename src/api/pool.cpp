#include "api/route.h"

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

Result<net::Response> hosts(Context& context, Call&) {
  HELIO_TRY(found, context.feed.hosts());
  return reply_list(encode_all(found));
}

Result<net::Response> nodes(Context& context, Call& call) {
  HELIO_TRY(all, call.boolean("all"));
  HELIO_TRY(found, context.feed.nodes(call.caller.scope, all));
  const auto usage = context.hub.usage();
  json::Array items;
  items.reserve(found.size());
  for (const model::Node& node : found) {
    const auto known = usage.find(node.id);
    items.push_back(node_view(node, known == usage.end() ? std::nullopt : std::optional(known->second)));
  }
  return reply_list(std::move(items));
}

json::Value node_list(json::Schemas& schemas) { return list_schema(node_schema(schemas)); }

}  // namespace

void add_pool_routes(Routes& routes) {
  routes.push_back({"GET",
                    "/v1/hosts",
                    "listHosts",
                    "Machines of the pool",
                    Access{Verb::see, Kind::host},
                    {},
                    nullptr,
                    200,
                    schema_list_of<model::Host>,
                    "application/json",
                    false,
                    hosts});
  routes.push_back({"GET",
                    "/v1/nodes",
                    "listNodes",
                    "Live nodes of all jobs",
                    Access{Verb::see, Kind::node},
                    {{"all", "those that are gone too", Type::boolean}},
                    nullptr,
                    200,
                    node_list,
                    "application/json",
                    false,
                    nodes});
}

}  // namespace helio::api
