#include "api/route.h"
#include "api/wait.h"

#include <array>
#include <charconv>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

constexpr std::string_view kSubmit = "POST /v1/jobs";
constexpr std::string_view kRerun = "POST /v1/jobs/{id}/rerun";
constexpr Duration kLongestWait = 1h;

net::Response created(const model::Job& job, std::string document) {
  net::Response out = net::Response::json(201, std::move(document));
  out.headers.emplace_back("Location", "/v1/jobs/" + job.id.value);
  return out;
}

Result<net::Response> submit(Context& context, Call& call) {
  HELIO_TRY(spec, call.body<model::JobSpec>());
  HELIO_TRY(idempotency, call.idempotency(kSubmit));
  std::string document;
  HELIO_TRY(job, context.jobs.submit(call.caller, spec, idempotency, &document));
  return created(job, std::move(document));
}

Result<net::Response> preview(Context& context, Call& call) {
  HELIO_TRY(spec, call.body<model::JobSpec>());
  HELIO_TRY(found, context.jobs.preview(call.caller, spec));
  return reply(view(found));
}

Result<std::vector<std::string>> states_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, comma - at);
    if (!json::enum_from<model::JobState>(name)) {
      return fail(Error(ErrorCode::invalid_argument, "unknown state '" + name + "'; states are separated by commas").at("query.state"));
    }
    out.push_back(name);
    at = comma + 1;
  }
  return out;
}

Result<net::Response> list(Context& context, Call& call) {
  store::ListQuery query;
  HELIO_TRY(states, states_of(call.text("state")));
  HELIO_TRY(limit, call.integer("limit", 100, 1, 1000));
  const std::string order = call.text("order", "newest");
  if (order != "newest" && order != "oldest") {
    return fail(Error(ErrorCode::invalid_argument, "expected newest or oldest").at("query.order"));
  }
  query.states = std::move(states);
  query.workspace = call.text("workspace");
  query.within = call.caller.scope.workspaces;
  query.limit = static_cast<int>(limit);
  query.cursor = call.text("cursor");
  query.newest_first = order == "newest";
  HELIO_TRY(page, context.jobs.list(query));
  return reply_list(encode_all(page.items), page.next);
}

/// The revision in a stored document's text, which stands first or last in it; empty if it stands elsewhere.
std::string_view revision_in(std::string_view text) {
  constexpr std::string_view kName = "\"revision\":";
  const auto digits_at = [&](std::size_t from) {
    std::size_t to = from;
    while (to < text.size() && text[to] >= '0' && text[to] <= '9') ++to;
    return text.substr(from, to - from);
  };
  if (text.size() > kName.size() && text.substr(1, kName.size()) == kName) return digits_at(1 + kName.size());
  const std::size_t last = text.rfind(kName);
  if (last == std::string_view::npos) return {};
  const std::string_view digits = digits_at(last + kName.size());
  // Only the top level's last member is followed by the brace that ends the document.
  return last + kName.size() + digits.size() + 1 == text.size() ? digits : std::string_view{};
}

/// Hot path: the stored text goes out as it is.
Result<net::Response> get(Context& context, Call& call) {
  HELIO_TRY(text, context.jobs.get_text(call.job()));
  const std::string_view revision = revision_in(text);
  std::string tag;
  if (!revision.empty()) tag.append("\"").append(revision).append("\"");
  if (const auto known = call.request.header("If-None-Match"); known && !tag.empty() && *known == tag) {
    net::Response unchanged;
    unchanged.status = 304;
    unchanged.headers.emplace_back("ETag", std::move(tag));
    return unchanged;
  }
  net::Response out = net::Response::json(200, std::move(text));
  if (!tag.empty()) out.headers.emplace_back("ETag", std::move(tag));
  return out;
}

Result<net::Response> stop(Context& context, Call& call) {
  HELIO_TRY(job, context.jobs.stop(call.caller, call.job(), model::StopReason::user));
  return reply(job, 202);
}

Result<net::Response> rerun(Context& context, Call& call) {
  HELIO_TRY(idempotency, call.idempotency(kRerun));
  std::string document;
  HELIO_TRY(job, context.jobs.rerun(call.caller, call.job(), idempotency, &document));
  return created(job, std::move(document));
}

Result<net::Response> remove(Context& context, Call& call) {
  HELIO_CHECK_OK(context.jobs.remove(call.caller, call.job()));
  return no_content();
}

Result<net::Response> explain(Context& context, Call& call) {
  HELIO_TRY(found, context.jobs.explain(call.caller, call.job()));
  return reply(view(found));
}

Result<net::Response> attempts(Context& context, Call& call) {
  HELIO_TRY(found, context.jobs.attempts(call.job()));
  return reply_list(encode_all(found));
}

Result<net::Response> nodes(Context& context, Call& call) {
  HELIO_TRY(found, context.jobs.nodes(call.job()));
  const auto usage = context.hub.usage();
  json::Array items;
  items.reserve(found.size());
  for (const model::Node& node : found) {
    const auto known = usage.find(node.id);
    items.push_back(node_view(node, known == usage.end() ? std::nullopt : std::optional(known->second)));
  }
  return reply_list(std::move(items));
}

Result<net::Response> wait(Context& context, Call& call) {
  HELIO_TRY(timeout, call.duration("timeout", 60s, kLongestWait));
  return wait_for_end(context.jobs, context.feed, call.job(), timeout);
}

json::Value node_list(json::Schemas& schemas) { return list_schema(node_schema(schemas)); }

}  // namespace

void add_job_routes(Routes& routes) {
  const Parameter key{"Idempotency-Key", "the same key with the same body answers the first reply again", Type::text, Where::header};
  const Parameter known{"If-None-Match", "ETag of the copy that the client has", Type::text, Where::header};
  const std::vector<Parameter> filters{{"state", "job states, separated by commas"},
                                       {"workspace", "only of this workspace"},
                                       {"order", "newest (default) or oldest first"},
                                       {"limit", "at most so many, 1 to 1000 (100)", Type::integer},
                                       {"cursor", "`next` of the former page"}};
  const Parameter timeout{"timeout", "how long to wait at most (60s); the reply tells the state either way", Type::duration};
  using model::Job;
  routes.push_back({"POST",
                    "/v1/jobs",
                    "submitJob",
                    "Submit a job",
                    Access{Verb::create, Kind::job},
                    {key},
                    schema_of<model::JobSpec>,
                    201,
                    schema_of<Job>,
                    "application/json",
                    false,
                    submit});
  routes.push_back({"POST",
                    "/v1/jobs:preview",
                    "previewJob",
                    "What a submit would do",
                    Access{Verb::create, Kind::job},
                    {},
                    schema_of<model::JobSpec>,
                    200,
                    schema_of<PreviewView>,
                    "application/json",
                    false,
                    preview});
  routes.push_back({"GET", "/v1/jobs", "listJobs", "List jobs", Access{Verb::see, Kind::job}, filters, nullptr, 200, schema_list_of<Job>,
                    "application/json", false, list});
  routes.push_back({"GET",
                    "/v1/jobs/{id}",
                    "getJob",
                    "One job",
                    Access{Verb::see, Kind::job},
                    {known},
                    nullptr,
                    200,
                    schema_of<Job>,
                    "application/json",
                    false,
                    get});
  routes.push_back({"DELETE",
                    "/v1/jobs/{id}",
                    "removeJob",
                    "Remove an ended job with its logs and files",
                    Access{Verb::remove, Kind::job, true},
                    {},
                    nullptr,
                    204,
                    nullptr,
                    "",
                    false,
                    remove});
  routes.push_back({"POST",
                    "/v1/jobs/{id}/stop",
                    "stopJob",
                    "Ask a job to stop",
                    Access{Verb::stop, Kind::job, true},
                    {},
                    nullptr,
                    202,
                    schema_of<Job>,
                    "application/json",
                    false,
                    stop});
  routes.push_back({"POST",
                    "/v1/jobs/{id}/rerun",
                    "rerunJob",
                    "Submit the same spec again",
                    Access{Verb::exec, Kind::job, true},
                    {key},
                    nullptr,
                    201,
                    schema_of<Job>,
                    "application/json",
                    false,
                    rerun});
  routes.push_back({"GET",
                    "/v1/jobs/{id}/wait",
                    "waitForJob",
                    "Answer when the job has ended",
                    Access{Verb::see, Kind::job},
                    {timeout},
                    nullptr,
                    200,
                    schema_of<Job>,
                    "application/json",
                    false,
                    wait});
  routes.push_back({"GET",
                    "/v1/jobs/{id}/explain",
                    "explainJob",
                    "Why a job is where it is",
                    Access{Verb::see, Kind::job},
                    {},
                    nullptr,
                    200,
                    schema_of<ExplanationView>,
                    "application/json",
                    false,
                    explain});
  routes.push_back({"GET",
                    "/v1/jobs/{id}/attempts",
                    "listAttempts",
                    "Attempts of a job",
                    Access{Verb::see, Kind::attempt},
                    {},
                    nullptr,
                    200,
                    schema_list_of<model::Attempt>,
                    "application/json",
                    false,
                    attempts});
  routes.push_back({"GET",
                    "/v1/jobs/{id}/nodes",
                    "listJobNodes",
                    "Nodes of a job",
                    Access{Verb::see, Kind::node},
                    {},
                    nullptr,
                    200,
                    node_list,
                    "application/json",
                    false,
                    nodes});
}

}  // namespace helio::api
