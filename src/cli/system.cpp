// up, down, version, status.

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/daemon.h"
#include "cli/table.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

namespace helio::cli {
namespace {

constexpr Duration kStopPatience = 30s;
constexpr std::size_t kNamedJobs = 5;
constexpr const char* kLiveStates = "queued,starting,running,restarting,suspended,stopping";

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

/// What is said of the jobs that a stopped daemon leaves behind; empty: there are none.
std::string left_behind(const std::vector<model::Job>& jobs) {
  if (jobs.empty()) return {};
  std::string names;
  const std::size_t shown = std::min(jobs.size(), kNamedJobs);
  for (std::size_t i = 0; i < shown; ++i) names += (i == 0 ? "" : ", ") + jobs[i].spec.name;
  if (shown < jobs.size()) names += ", …";
  return fmt::format("; {} job{} without it ({}): `helio up` finds {} again, `helio down --stop-jobs` ends {}", jobs.size(),
                     jobs.size() == 1 ? " goes on" : "s go on", names, jobs.size() == 1 ? "it" : "them", jobs.size() == 1 ? "it" : "them");
}

Result<int> down(const Context& context, bool stop_jobs) {
  auto api = ApiClient::connect(context);
  bool answers = api && daemon_answers((*api)->url(), 2s, context.roots);
  if (stop_jobs && !answers && context.url.empty() && ::access(context.home.store().c_str(), F_OK) == 0) {
    // Jobs that an earlier `helio down` left running end only by a daemon.
    HELIO_CHECK_OK(daemon_up(context));
    api = ApiClient::connect(context);
    answers = api.has_value();
  }
  std::vector<model::Job> jobs;
  if (answers) {
    if (stop_jobs) HELIO_CHECK_OK(stop_all(**api));
    HELIO_TRY(items, (*api)->list("/v1/jobs" + query({{"state", kLiveStates}})));
    HELIO_TRY(live, decode_items<model::Job>(items));
    jobs = std::move(live);
  }
  HELIO_TRY(was_up, daemon_down(context, kStopPatience));
  fmt::print("heliostat {}{}\n", was_up ? "is down" : "was not up", was_up ? left_behind(jobs) : "");
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
  if (context.output() != Output::table || !reply.is_object()) {
    print_document(context, reply);
    return 0;
  }
  const json::Object& facts = reply.get_object();
  const auto number = [&](const char* name) {
    const json::Value* value = facts.if_contains(name);
    return value != nullptr && value->is_number() ? value->to_number<double>() : 0.0;
  };
  const auto count = [&](const char* name) { return static_cast<std::int64_t>(number(name)); };
  const auto text = [&](const char* name) {
    const json::Value* value = facts.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  Table table({"HELIOSTAT", text("version")});
  table.row({"url", text("url")});
  table.row({"home", text("home")});
  table.row({"process", fmt::format("{}, {} of memory, {} threads", count("pid"), format_bytes({count("memory")}), count("threads"))});
  table.row({"up for", short_age(duration_cast<Duration>(std::chrono::duration<double>(number("uptime"))))});
  table.row({"jobs", fmt::format("{} with nodes, {} waiting", count("active"), count("queued"))});
  table.row({"connected", fmt::format("{} agents, {} clients", count("agents"), count("connections"))});
  table.row({"logs", format_bytes({count("logs")})});
  table.row({"revision", std::to_string(count("revision"))});
  table.print();
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
