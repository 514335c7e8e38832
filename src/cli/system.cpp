// up, down, version, status.

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/daemon.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace helio::cli {
namespace {

constexpr Duration kStopPatience = 30s;

Result<int> up(const Context& context) {
  HELIO_TRY(up, daemon_up(context));
  if (context.output() != Output::table) {
    print_document(context, json::Object{{"url", up.url}, {"version", up.version}, {"started", up.started}, {"home", context.home.root}});
    return 0;
  }
  fmt::print("heliostat is {} at {} (data in {}, log in {})\n", up.started ? "up" : "up already", up.url, context.home.root,
             context.home.daemon_log());
  return 0;
}

/// Asks every live job to stop and waits for their ends.
Result<void> stop_all(ApiClient& api) {
  HELIO_TRY(items, api.list("/v1/jobs"));
  HELIO_TRY(jobs, decode_items<model::Job>(items));
  for (const model::Job& job : jobs) {
    if (is_terminal(job.state)) continue;
    fmt::print(stderr, "stopping {} {}\n", job.id.value, job.spec.name);
    HELIO_CHECK_OK(api.send("POST", "/v1/jobs/" + job.id.value + "/stop", nullptr));
  }
  for (const model::Job& job : jobs) {
    model::Job now = job;
    while (!is_terminal(now.state)) {
      HELIO_TRY(reply, api.get("/v1/jobs/" + job.id.value + "/wait?timeout=30", 60s));
      HELIO_TRY(decoded, json::decode<model::Job>(reply, json::Unknown::ignore));
      now = std::move(decoded);
    }
  }
  return {};
}

Result<int> down(const Context& context, bool stop_jobs) {
  if (stop_jobs) {
    if (auto api = ApiClient::connect(context); api && daemon_answers((*api)->url(), 2s)) HELIO_CHECK_OK(stop_all(**api));
  }
  HELIO_TRY(was_up, daemon_down(context, kStopPatience));
  fmt::print("heliostat {}\n", was_up ? "is down; running jobs go on and are found again by `helio up`" : "was not up");
  return 0;
}

Result<int> version(const Context& context) {
  json::Object out{{"helio", HELIO_VERSION}};
  if (auto api = ApiClient::connect(context)) {
    if (auto daemon = (*api)->get("/v1/version", 2s)) out["daemon"] = std::move(*daemon);
  }
  if (context.output() != Output::table) {
    print_document(context, out);
    return 0;
  }
  fmt::print("helio {}\n", HELIO_VERSION);
  if (const json::Value* daemon = out.if_contains("daemon"); daemon != nullptr && daemon->is_object()) {
    const json::Value* number = daemon->get_object().if_contains("version");
    if (number != nullptr && number->is_string()) fmt::print("heliostatd {}\n", std::string_view(number->get_string()));
  }
  return 0;
}

Result<int> status(const Context& context) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(reply, api->get("/v1/status"));
  print_document(context, reply);
  return 0;
}

}  // namespace

void add_system_commands(CLI::App& app, Context& context) {
  CLI::App* up_command = app.add_subcommand("up", "start heliostat on this machine (nothing happens when it is up)");
  up_command->callback([&context] { context.action = [&context] { return up(context); }; });

  CLI::App* down_command = app.add_subcommand("down", "stop the daemon; running jobs go on without it");
  const auto stop_jobs = std::make_shared<bool>(false);
  down_command->add_flag("--stop-jobs", *stop_jobs, "stop every job first and wait for its end");
  down_command->callback([&context, stop_jobs] { context.action = [&context, stop_jobs] { return down(context, *stop_jobs); }; });

  CLI::App* version_command = app.add_subcommand("version", "versions of this program and of the daemon");
  version_command->callback([&context] { context.action = [&context] { return version(context); }; });

  CLI::App* status_command = app.add_subcommand("status", "the daemon's own state");
  status_command->callback([&context] { context.action = [&context] { return status(context); }; });
}

}  // namespace helio::cli
