// cluster: long-lived clusters by their names: create, list, show, scale, connect, delete.

#include "base/rng.h"
#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/daemon.h"
#include "cli/follow.h"
#include "cli/outcome.h"
#include "cli/spec_options.h"
#include "cli/table.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>

namespace helio::cli {
namespace {

constexpr std::size_t kReasonWidth = 90;

Timestamp now() { return SystemClock::instance().now(); }

void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

std::string target(const std::string& name) { return "/v1/clusters/" + net::url_encode(name); }

/// What is said of a cluster that runs is what it is doing.
std::string state_of(const model::Job& job) {
  if (job.state != model::JobState::running) return std::string(json::enum_name(job.state));
  return job.idle_since ? "idle" : "ready";
}

std::string why_of(const model::Job& job) {
  if (is_terminal(job.state) && job.verdict) return job.verdict->cause + ": " + job.verdict->message;
  return job.state == model::JobState::running && !job.idle_since ? std::string() : job.reason;
}

/// How people and programs get in.
void print_doors(const std::string& url, const model::Job& job) {
  fmt::print("  ray jobs   ray job submit --address {}/ray/{}/clusters/{} -- COMMAND\n", url, job.spec.workspace, job.spec.name);
  fmt::print("  ray client helio cluster connect {} -- python script.py\n", job.spec.name);
  fmt::print("  dashboard  {}/clusters/{}/dashboard/  (or helio dashboard {})\n", url, job.spec.name, job.spec.name);
}

// --- create -----------------------------------------------------------------------------------------------------------------------

struct CreateFlags {
  SpecFlags spec;
  bool no_wait = false;
};

/// Until it is ready. Error: precondition_failed with the verdict when it ends instead.
Result<model::Job> wait_until_ready(const Context& context, const std::string& id) {
  std::atomic<bool> enough{false};
  model::Job last;
  std::string said;
  const auto end = watch_job(context, id, enough, [&](const model::Job& job, const std::vector<model::Attempt>& attempts) {
    last = job;
    enough = job.state == model::JobState::running;
    const std::string& doing = job.state == model::JobState::starting && !attempts.empty() ? attempts.back().reason : job.reason;
    if (enough || is_terminal(job.state) || doing == said) return;
    said = doing;
    say(fmt::format("{:<10}{}", json::enum_name(job.state), doing));
  });
  if (enough) return last;
  if (!end) return fail(end.error());
  return fail(ErrorCode::precondition_failed, "the cluster {} has {}: {}", end->spec.name, json::enum_name(end->state), why_of(*end));
}

Result<int> create(const Context& context, const CreateFlags& flags) {
  HELIO_TRY(up, daemon_up(context));
  if (up.started) say("heliostat is up at " + up.url);
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(spec, build_cluster_spec(flags.spec, from_environment));
  SystemRng rng;
  HELIO_TRY(reply, api->send("POST", "/v1/clusters", spec, {{"Idempotency-Key", random_hex(rng, 16)}}));
  HELIO_TRY(job, json::decode<model::Job>(reply, json::Unknown::ignore));
  say(fmt::format("{}  cluster {}: {} nodes on image {}", job.id.value, job.spec.name, shape_of(job.spec), job.spec.image));
  for (const std::string& warning : job.warnings) say("warning   " + warning);
  if (!flags.no_wait) {
    HELIO_TRY(ready, wait_until_ready(context, job.id.value));
    job = std::move(ready);
  }
  if (context.output() != Output::table) {
    print_document(context, json::encode(job));
    return 0;
  }
  const bool ready = job.state == model::JobState::running;  // nothing has run in it yet, so it is idle too
  fmt::print("{}  {}\n", job.spec.name, ready ? "ready" : json::enum_name(job.state));
  print_doors(api->url(), job);
  return 0;
}

// --- list, show, delete -----------------------------------------------------------------------------------------------------------

Result<int> list(const Context& context, bool ended) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(items, api->list("/v1/clusters" + query({{"ended", ended ? "true" : ""}})));
  if (context.output() != Output::table) {
    print_document(context, items);
    return 0;
  }
  HELIO_TRY(jobs, decode_items<model::Job>(items));
  Table table({"CLUSTER", "STATE", "NODES", "IMAGE", "OWNER", "AGE", "JOB", "WHY"});
  for (const model::Job& job : jobs) {
    table.row({job.spec.name, state_of(job), shape_of(job.spec), job.spec.image, job.owner, short_age(now() - job.created), job.id.value,
               one_line(why_of(job), kReasonWidth)});
  }
  table.print();
  return 0;
}

Result<int> show(const Context& context, const std::string& name) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(document, api->get(target(name)));
  if (context.output() != Output::table) {
    print_document(context, document);
    return 0;
  }
  HELIO_TRY(job, json::decode<model::Job>(document, json::Unknown::ignore));
  const std::string why = why_of(job);
  fmt::print("{}  {}{}\n", job.spec.name, state_of(job), why.empty() ? "" : ": " + why);
  fmt::print("  job        {}  (helio show, logs, exec, events take it, and the name too)\n", job.id.value);
  fmt::print("  made       {} by {}\n", format_time(job.created).substr(0, 19) + "Z", job.owner);
  fmt::print("  shape      {} nodes on image {}, priority {}\n", shape_of(job.spec), job.spec.image, job.spec.priority);
  const Duration idle = job.spec.limits.idle.value_or(Span{0s}).d;
  fmt::print("  idle       {}\n", idle > Duration(0) ? "shut down after " + format_duration(idle) + " without use" : "never shut down");
  if (!is_terminal(job.state)) print_doors(api->url(), job);
  return 0;
}

struct ScaleFlags {
  std::string name;
  std::int32_t count = 0;
  std::string group;
};

Result<int> scale(const Context& context, const ScaleFlags& flags) {
  HELIO_TRY(api, ApiClient::connect(context));
  json::Object body{{"count", flags.count}};
  if (!flags.group.empty()) body["group"] = flags.group;
  HELIO_TRY(reply, api->send("POST", target(flags.name) + "/scale", body));
  if (context.output() != Output::table) {
    print_document(context, reply);
    return 0;
  }
  HELIO_TRY(job, json::decode<model::Job>(reply, json::Unknown::ignore));
  fmt::print("{}  {}\n", flags.name, shape_of(job.spec));
  say(fmt::format("more workers come when there is room; of fewer, the last leave when their work has ended: helio cluster show {}",
                  flags.name));
  return 0;
}

Result<int> remove(const Context& context, const std::vector<std::string>& names, bool and_wait) {
  HELIO_TRY(api, ApiClient::connect(context));
  for (const std::string& name : names) HELIO_CHECK_OK(api->get(target(name)));  // all of them, before one is touched
  std::vector<model::Job> going;
  for (const std::string& name : names) {
    HELIO_TRY(reply, api->send("DELETE", target(name), nullptr));
    HELIO_TRY(job, json::decode<model::Job>(reply, json::Unknown::ignore));
    const bool ended = is_terminal(job.state);
    fmt::print("{}  {}\n", name, ended ? json::enum_name(job.state) : "stopping");
    if (!ended) going.push_back(std::move(job));
  }
  if (!and_wait) return 0;
  std::fflush(stdout);
  const std::atomic<bool> cancelled{false};
  for (const model::Job& job : going) {
    HELIO_TRY(end, watch_job(context, job.id.value, cancelled, [](const model::Job&, const std::vector<model::Attempt>&) {}));
    fmt::print("{}  {}\n", job.spec.name, json::enum_name(end.state));
  }
  return 0;
}

}  // namespace

void add_cluster_commands(CLI::App& app, Context& context) {
  CLI::App* clusters = app.add_subcommand("cluster", "long-lived clusters: create, list, show, scale, connect, delete")->alias("clusters");
  clusters->callback([&context, clusters] {
    if (clusters->get_subcommands().empty()) context.action = [&context] { return list(context, false); };
  });

  const auto flags = std::make_shared<CreateFlags>();
  CLI::App* create_command = clusters->add_subcommand("create", "make one and wait until it is ready");
  create_command->add_option("name", flags->spec.name, "1 to 63 of a-z, 0-9 and -");
  create_command->add_option("-f,--file", flags->spec.file, "YAML or JSON file; flags win over it");
  add_node_options(*create_command, flags->spec);
  add_policy_options(*create_command, flags->spec);
  create_command->add_option("--idle", flags->spec.idle, "shut it down after so long without use (default 1h; 0s: never)")->group("Policy");
  create_command->add_flag("--no-wait", flags->no_wait, "return at once");
  create_command->callback([&context, flags] { context.action = [&context, flags] { return create(context, *flags); }; });

  const auto ended = std::make_shared<bool>(false);
  CLI::App* list_command = clusters->add_subcommand("list", "list them")->alias("ls");
  list_command->add_flag("-a,--all", *ended, "the last of each name, ended or not");
  list_command->callback([&context, ended] { context.action = [&context, ended] { return list(context, *ended); }; });

  const auto shown = std::make_shared<std::string>();
  CLI::App* show_command = clusters->add_subcommand("show", "one: its state, and how to get in");
  show_command->add_option("name", *shown)->required();
  show_command->callback([&context, shown] { context.action = [&context, shown] { return show(context, *shown); }; });

  const auto scaled = std::make_shared<ScaleFlags>();
  CLI::App* scale_command = clusters->add_subcommand("scale", "ask for another number of workers");
  scale_command->add_option("name", scaled->name)->required();
  scale_command->add_option("workers", scaled->count, "how many it shall have")->required();
  scale_command->add_option("--group", scaled->group, "which group of workers, where there are several");
  scale_command->callback([&context, scaled] { context.action = [&context, scaled] { return scale(context, *scaled); }; });

  add_connect_command(*clusters, context);

  const auto removed = std::make_shared<std::vector<std::string>>();
  const auto and_wait = std::make_shared<bool>(false);
  CLI::App* remove_command = clusters->add_subcommand("delete", "take clusters down, with all that runs in them")->alias("rm");
  remove_command->add_option("name", *removed)->required();
  remove_command->add_flag("--wait", *and_wait, "until they are gone");
  remove_command->callback(
      [&context, removed, and_wait] { context.action = [&context, removed, and_wait] { return remove(context, *removed, *and_wait); }; });
}

}  // namespace helio::cli
