#include "api/route.h"

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

constexpr std::string_view kCreate = "POST /v1/clusters";

Result<net::Response> create(Context& context, Call& call) {
  HELIO_TRY(input, call.body<ClusterInput>());
  HELIO_TRY(idempotency, call.idempotency(kCreate));
  std::string document;
  HELIO_TRY(job, context.jobs.submit(call.caller, spec_of(std::move(input)), idempotency, &document));
  net::Response out = net::Response::json(201, std::move(document));
  out.headers.emplace_back("Location", "/v1/clusters/" + job.spec.name);
  return out;
}

Result<net::Response> list(Context& context, Call& call) {
  HELIO_TRY(ended, call.boolean("ended"));
  HELIO_TRY(found, context.jobs.clusters(call.caller.scope, call.text("workspace"), ended));
  return reply_list(encode_all(found));
}

Result<net::Response> get(Context& context, Call& call) {
  HELIO_TRY(text, context.jobs.get_text(call.job()));
  return net::Response::json(200, std::move(text));
}

Result<net::Response> scale(Context& context, Call& call) {
  HELIO_TRY(input, call.body<ScaleInput>());
  HELIO_TRY(job, context.jobs.scale(call.caller, call.job(), {std::move(input.group), input.count}));
  return reply(job, 202);
}

Result<net::Response> remove(Context& context, Call& call) {
  HELIO_TRY(job, context.jobs.stop(call.caller, call.job(), model::StopReason::user));
  return reply(job, 202);
}

}  // namespace

void add_cluster_routes(Routes& routes) {
  const Parameter key{"Idempotency-Key", "the same key with the same body answers the first reply again", Type::text, Where::header};
  const Parameter workspace{"workspace", "of the name (default)"};
  using model::Job;
  routes.push_back({"POST",
                    "/v1/clusters",
                    "createCluster",
                    "Make a long-lived cluster",
                    Access{Verb::create, Kind::job},
                    {key},
                    schema_of<ClusterInput>,
                    201,
                    schema_of<Job>,
                    "application/json",
                    false,
                    create});
  routes.push_back({"GET",
                    "/v1/clusters",
                    "listClusters",
                    "Long-lived clusters by their names",
                    Access{Verb::see, Kind::job},
                    {{"workspace", "only of this workspace"}, {"ended", "the last of each name, ended or not", Type::boolean}},
                    nullptr,
                    200,
                    schema_list_of<Job>,
                    "application/json",
                    false,
                    list});
  routes.push_back({"GET",
                    "/v1/clusters/{cluster}",
                    "getCluster",
                    "One long-lived cluster: the job that has this name, or had it last",
                    Access{Verb::see, Kind::job},
                    {workspace},
                    nullptr,
                    200,
                    schema_of<Job>,
                    "application/json",
                    false,
                    get});
  routes.push_back({"POST",
                    "/v1/clusters/{cluster}/scale",
                    "scaleCluster",
                    "Ask for another number of workers: more come when there is room; of fewer, the last leave when their work has ended",
                    Access{Verb::stop, Kind::job, true},
                    {workspace},
                    schema_of<ScaleInput>,
                    202,
                    schema_of<Job>,
                    "application/json",
                    false,
                    scale});
  routes.push_back({"DELETE",
                    "/v1/clusters/{cluster}",
                    "deleteCluster",
                    "Take a long-lived cluster down, with all that runs in it; its record and logs stay",
                    Access{Verb::stop, Kind::job, true},
                    {workspace},
                    nullptr,
                    202,
                    schema_of<Job>,
                    "application/json",
                    false,
                    remove});
}

}  // namespace helio::api
