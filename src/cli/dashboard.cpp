// dashboard: a link to a job's Ray dashboard, or to what is kept of the job.

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/table.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace helio::cli {
namespace {

Result<int> print_link(const Context& context, const std::string& what, bool read_only) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(what));
  HELIO_TRY(made, api->send("POST", "/v1/jobs/" + id + "/dashboard-links", json::Object{{"read_only", read_only}}));
  const json::Value* path = made.as_object().if_contains("path");
  if (path == nullptr || !path->is_string()) return fail(ErrorCode::internal, "the daemon answered without a path");
  const std::string url = api->url() + std::string(path->get_string());
  if (context.output() != Output::table) {
    made.as_object()["url"] = url;
    print_document(context, made);
    return 0;
  }
  fmt::print("{}\n", url);
  std::fflush(stdout);
  if (::isatty(STDOUT_FILENO) != 0) fmt::print(stderr, "# opens once, within 10 minutes; whoever opens it sees this job as you do\n");
  return 0;
}

}  // namespace

void add_dashboard_command(CLI::App& app, Context& context) {
  const auto job = std::make_shared<std::string>();
  const auto read_only = std::make_shared<bool>(false);
  CLI::App* dashboard = app.add_subcommand("dashboard", "print a link that opens a job's Ray dashboard, or after its end its record");
  dashboard->add_option("job", *job, "id, the beginning of one, a name, or last")->required();
  dashboard->add_flag("--read-only", *read_only, "whoever opens it only looks");
  dashboard->callback(
      [&context, job, read_only] { context.action = [&context, job, read_only] { return print_link(context, *job, *read_only); }; });
}

}  // namespace helio::cli
