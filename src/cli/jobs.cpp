// ps, show, wait, stop, rerun, rm, explain, events.

#include "base/rng.h"
#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/outcome.h"
#include "cli/sse.h"
#include "cli/table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <thread>

namespace helio::cli {
namespace {

constexpr std::size_t kShownJobs = 20;
constexpr std::int64_t kShownEvents = 100;
constexpr std::size_t kReasonWidth = 60;
constexpr Duration kLongPoll = 30s;
constexpr Duration kAwayPause = 200ms;

Timestamp now() { return SystemClock::instance().now(); }

std::string target(const std::string& id, std::string_view what = {}) { return fmt::format("/v1/jobs/{}{}", net::url_encode(id), what); }

// --- ps ---------------------------------------------------------------------------------------------------------------------------

struct PsFlags {
  bool all = false;
  std::size_t limit = kShownJobs;
  std::string state;
  bool ids = false;
};

std::string why_of(const model::Job& job) {
  if (job.state == model::JobState::succeeded) return {};
  if (is_terminal(job.state) && job.verdict) return job.verdict->cause + ": " + job.verdict->message;
  return job.reason;
}

Result<int> ps(const Context& context, const PsFlags& flags) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(items, api->list("/v1/jobs" + query({{"state", flags.state}}), flags.all ? 0 : flags.limit));
  if (context.output() != Output::table) {
    print_document(context, items);
    return 0;
  }
  HELIO_TRY(jobs, decode_items<model::Job>(items));
  if (flags.ids) {
    for (const model::Job& job : jobs) fmt::print("{}\n", job.id.value);
    return 0;
  }
  Table table({"JOB", "NAME", "STATE", "NODES", "TRIES", "AGE", "TOOK", "WHY"});
  for (const model::Job& job : jobs) {
    const Timestamp end = job.finished.value_or(now());
    const bool cluster = job.spec.type == model::JobType::cluster;
    table.row({job.id.value, one_line(job.spec.name, 24) + (cluster ? " (cluster)" : ""), std::string(json::enum_name(job.state)),
               shape_of(job.spec), std::to_string(job.attempts), short_age(now() - job.created), stage_time(end - job.created),
               one_line(why_of(job), kReasonWidth)});
  }
  table.print();
  if (!flags.all && jobs.size() == flags.limit) fmt::print(stderr, "(the newest {}; --all lists every job)\n", flags.limit);
  return 0;
}

// --- show -------------------------------------------------------------------------------------------------------------------------

std::string clock_text(Timestamp time) { return format_time(time).substr(0, 19) + "Z"; }

void show_attempt(const model::Attempt& attempt) {
  fmt::print("\nattempt {} ({}): {}{}\n", attempt.number, attempt.id.value, json::enum_name(attempt.state),
             attempt.reason.empty() || is_terminal(attempt.state) ? "" : ", " + attempt.reason);
  if (const std::string stages = stage_line(stages_of(attempt)); !stages.empty()) fmt::print("  time     {}\n", stages);
  if (attempt.verdict) {
    fmt::print("  verdict  {} ({}): {}\n", attempt.verdict->cause, json::enum_name(attempt.verdict->charged_to), attempt.verdict->message);
    for (const model::Evidence& evidence : attempt.verdict->evidence) {
      fmt::print("  seen in  {}: {}\n", evidence.source, last_part(evidence.text, 160));
    }
    if (!attempt.verdict->decision.empty()) fmt::print("  policy   {}\n", attempt.verdict->decision);
  }
}

std::string short_node(const model::Node& node) { return node.role == model::Role::head ? "head" : fmt::format("w{}", node.index); }

void show_nodes(const std::vector<model::Node>& nodes) {
  if (nodes.empty()) return;
  Table table({"NODE", "FLAVOR", "STATE", "HOST", "ADDRESS", "DOING"});
  for (const model::Node& node : nodes) {
    const std::string& doing = node.status.step.empty() || is_terminal(node.state) ? node.reason : node.status.step;
    table.row({short_node(node), node.placement.flavor, std::string(json::enum_name(node.state)), node.host.value, node.address,
               one_line(doing, kReasonWidth)});
  }
  fmt::print("\n");
  table.print();
}

Result<int> show(const Context& context, const std::string& what) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(what));
  HELIO_TRY(document, api->get(target(id)));
  HELIO_TRY(attempts, api->attempts(id));
  HELIO_TRY(nodes, api->nodes(id));
  if (context.output() != Output::table) {
    json::Array all_attempts;
    for (const model::Attempt& attempt : attempts) all_attempts.push_back(json::encode(attempt));
    print_document(context, json::Object{{"job", document}, {"attempts", std::move(all_attempts)}});
    return 0;
  }
  HELIO_TRY(job, json::decode<model::Job>(document, json::Unknown::ignore));
  fmt::print("{}  {}\n", job.id.value, job.spec.name);
  fmt::print("  state    {}{}\n", json::enum_name(job.state), job.reason.empty() ? "" : ": " + job.reason);
  fmt::print("  made     {} by {}{}\n", clock_text(job.created), job.owner, job.rerun_of ? ", again of " + job.rerun_of->value : "");
  fmt::print("  shape    {}{} on image {}, priority {}\n", shape_of(job.spec), job.spec.cluster ? "" : " nodes", job.spec.image,
             job.spec.priority);
  if (job.finished) {
    fmt::print("  ended    {} after {}, exit code {}\n", clock_text(*job.finished), stage_time(*job.finished - job.created),
               exit_code_of(job));
  }
  for (const std::string& warning : job.warnings) fmt::print("  warning  {}\n", warning);
  for (const model::Attempt& attempt : attempts) show_attempt(attempt);
  show_nodes(nodes);
  return 0;
}

// --- wait, stop, rerun, rm ----------------------------------------------------------------------------------------------------------

/// Long-polls until the job has ended, over restarts of the daemon. Error: deadline_exceeded at `deadline`.
Result<model::Job> wait_for_end(const Context& context, const std::string& id, std::optional<MonoTime> deadline) {
  const SystemClock& clock = SystemClock::instance();
  while (true) {
    const Duration left = deadline ? std::max<Duration>(*deadline - clock.mono(), 0s) : kLongPoll;
    const auto ask = duration_cast<std::chrono::milliseconds>(std::min(left, kLongPoll)).count();
    const auto once = [&]() -> Result<model::Job> {
      HELIO_TRY(api, ApiClient::connect(context));
      HELIO_TRY(reply, api->get(target(id, fmt::format("/wait?timeout={}ms", ask)), kLongPoll + 30s));
      return json::decode<model::Job>(reply, json::Unknown::ignore);
    };
    auto job = once();
    const bool away = !job && (job.error().code() == ErrorCode::unavailable || job.error().code() == ErrorCode::deadline_exceeded);
    if (!job && !away) return job;
    if (job && is_terminal(job->state)) return job;
    if (deadline && clock.mono() >= *deadline) return fail(ErrorCode::deadline_exceeded, "{} has not ended in time; it goes on", id);
    if (away) std::this_thread::sleep_for(kAwayPause);
  }
}

Result<int> wait(const Context& context, const std::vector<std::string>& whats, const std::string& timeout) {
  std::optional<MonoTime> deadline;
  if (!timeout.empty()) {
    const auto patience = parse_duration(timeout);
    if (!patience) return fail(ErrorCode::invalid_argument, "--timeout takes a time such as 90s or 10m, not '{}'", timeout);
    deadline = SystemClock::instance().mono() + *patience;
  }
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(ids, api->resolve_jobs(whats));
  int code = 0;
  for (const std::string& id : ids) {
    HELIO_TRY(job, wait_for_end(context, id, deadline));
    if (context.output() == Output::table) {
      fmt::print("{}  {}  {}  exit code {}\n", id, job.spec.name, json::enum_name(job.state), exit_code_of(job));
    } else {
      print_document(context, json::encode(job));
    }
    if (code == 0) code = exit_code_of(job);
  }
  return code;
}

/// An ended job whose nodes are kept for inspection.
Result<bool> keeps_nodes(ApiClient& api, const std::string& id) {
  HELIO_TRY(job, api.job(id));
  if (!is_terminal(job.state) || job.spec.retention.nodes == model::Retain::none) return false;
  HELIO_TRY(nodes, api.nodes(id));
  return std::ranges::any_of(nodes, [](const model::Node& node) { return !is_terminal(node.state); });
}

Result<int> stop(const Context& context, const std::vector<std::string>& whats, bool and_wait) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(ids, api->resolve_jobs(whats));
  std::vector<std::string> stopping;
  for (const std::string& id : ids) {
    HELIO_TRY(kept, keeps_nodes(*api, id));
    HELIO_TRY(reply, api->send("POST", target(id, "/stop"), nullptr));
    HELIO_TRY(job, json::decode<model::Job>(reply, json::Unknown::ignore));
    // The reply shows the state in which the stop found the job.
    const bool ended = is_terminal(job.state);
    fmt::print("{}  {}{}\n", id, ended ? json::enum_name(job.state) : "stopping", kept && ended ? "; its kept nodes are given back" : "");
    if (!ended) stopping.push_back(id);
  }
  if (!and_wait) return 0;
  std::fflush(stdout);
  for (const std::string& id : stopping) {
    HELIO_TRY(job, wait_for_end(context, id, std::nullopt));
    fmt::print("{}  {}\n", id, json::enum_name(job.state));
  }
  return 0;
}

Result<int> rerun(const Context& context, const std::string& what, bool follow, bool quiet) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(what));
  SystemRng rng;
  HELIO_TRY(reply, api->send("POST", target(id, "/rerun"), nullptr, {{"Idempotency-Key", random_hex(rng, 16)}}));
  HELIO_TRY(job, json::decode<model::Job>(reply, json::Unknown::ignore));
  if (follow) {
    if (!quiet) fmt::print(stderr, "{}  {}: again of {}\n", job.id.value, job.spec.name, id);
    return follow_to_end(context, job.id.value, {.stages = !quiet});
  }
  if (context.output() != Output::table) {
    print_document(context, reply);
  } else {
    fmt::print("{}\n", job.id.value);
  }
  return 0;
}

Result<int> rm(const Context& context, const std::vector<std::string>& whats) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(ids, api->resolve_jobs(whats));
  for (const std::string& id : ids) {
    HELIO_CHECK_OK(api->remove(target(id)));
    fmt::print("{}  removed\n", id);
  }
  return 0;
}

// --- explain, events --------------------------------------------------------------------------------------------------------------

Result<int> explain(const Context& context, const std::string& what) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(what));
  HELIO_TRY(reply, api->get(target(id, "/explain")));
  if (context.output() != Output::table) {
    print_document(context, reply);
    return 0;
  }
  const json::Object* object = reply.if_object();
  const auto text = [&](const char* name) {
    const json::Value* value = object == nullptr ? nullptr : object->if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  fmt::print("{} is {}: {}\n", id, text("state"), text("reason"));
  if (const json::Value* lines = object == nullptr ? nullptr : object->if_contains("lines"); lines != nullptr && lines->is_array()) {
    for (const json::Value& line : lines->get_array()) fmt::print("  {}\n", std::string_view(line.get_string()));
  }
  if (const std::string constraint = text("constraint"); !constraint.empty()) fmt::print("waits for   {}\n", constraint);
  if (const std::string help = text("would_help"); !help.empty()) fmt::print("would help  {}\n", help);
  return 0;
}

struct EventsFlags {
  std::string job;
  std::optional<std::int64_t> since;
  std::optional<std::int64_t> limit;
  bool follow = false;
};

/// The revision after which the wanted events lie. Every event has a revision of its own, so the last N of everything follow the newest
/// revision minus N; what happened to one job is short and told whole.
Result<std::int64_t> first_revision(ApiClient& api, const EventsFlags& flags) {
  if (flags.since) return *flags.since;
  if (!flags.job.empty()) return 0;
  HELIO_TRY(status, api.get("/v1/status"));
  const json::Value* newest = status.is_object() ? status.get_object().if_contains("revision") : nullptr;
  const std::int64_t revision = newest == nullptr ? 0 : newest->to_number<std::int64_t>();
  const std::int64_t limit = flags.limit.value_or(kShownEvents);
  if (!flags.limit && revision > limit) {
    fmt::print(stderr, "(the last {}; -n shows more of them, --since 0 all, and `helio events JOB` those of one job)\n", limit);
  }
  return std::max<std::int64_t>(0, revision - limit);
}

std::string member_text(const json::Value& event, const char* name) {
  const json::Object* object = event.if_object();
  const json::Value* value = object == nullptr ? nullptr : object->if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

void print_event(const Context& context, const json::Value& event) {
  if (context.output() == Output::json) {
    fmt::print("{}\n", json::dump(event));
  } else if (context.output() == Output::yaml) {
    fmt::print("---\n");
    print_document(context, event);
  } else {
    const std::string at = member_text(event, "at");
    fmt::print("{}  {:<22} {:<24} {}\n", at.substr(0, at.size() > 23 ? 23 : at.size()), member_text(event, "type"),
               member_text(event, "id"), one_line(member_text(event, "message"), 200));
  }
  std::fflush(stdout);
}

Result<int> events(const Context& context, const EventsFlags& flags) {
  HELIO_TRY(api, ApiClient::connect(context));
  std::string id;
  if (!flags.job.empty()) {
    HELIO_TRY(resolved, api->resolve_job(flags.job));
    id = resolved;
  }
  HELIO_TRY(since, first_revision(*api, flags));
  while (true) {
    HELIO_TRY(reply, api->get("/v1/events" + query({{"since", std::to_string(since)}, {"job", id}})));
    const json::Value* items = reply.is_object() ? reply.get_object().if_contains("items") : &reply;
    if (items == nullptr || !items->is_array()) return fail(ErrorCode::internal, "the daemon's list reply has no items");
    for (const json::Value& event : items->get_array()) {
      print_event(context, event);
      if (const json::Value* revision = event.get_object().if_contains("revision")) since = revision->to_number<std::int64_t>();
    }
    if (items->get_array().empty()) break;
  }
  if (!flags.follow) return 0;
  net::ClientRequest request;
  request.target = "/v1/events" + query({{"since", std::to_string(since)}, {"job", id}, {"watch", "true"}});
  request.deadline = 60s;
  SseParser parser;
  HELIO_CHECK_OK(api->stream(request, [&](std::string_view bytes) {
    parser.feed(bytes, [&](const SseEvent& event) {
      if (const auto value = json::parse(event.data); value && value->is_object()) print_event(context, *value);
    });
    return true;
  }));
  return 0;
}

}  // namespace

namespace {

void add_ending_commands(CLI::App& app, Context& context) {
  const auto jobs = std::make_shared<std::vector<std::string>>();
  const auto timeout = std::make_shared<std::string>();
  CLI::App* wait_command = app.add_subcommand("wait", "wait for jobs to end; exits with the first code that is not 0");
  wait_command->add_option("job", *jobs, "ids, unique prefixes, names, or last")->required();
  wait_command->add_option("--timeout", *timeout, "give up after this time, such as 10m");
  wait_command->callback(
      [&context, jobs, timeout] { context.action = [&context, jobs, timeout] { return wait(context, *jobs, *timeout); }; });

  const auto stopped = std::make_shared<std::vector<std::string>>();
  const auto and_wait = std::make_shared<bool>(false);
  CLI::App* stop_command =
      app.add_subcommand("stop", "stop jobs, whatever they are doing; of one that has ended, give back the nodes kept for inspection");
  stop_command->add_option("job", *stopped, "ids, unique prefixes, names, or last")->required();
  stop_command->add_flag("--wait", *and_wait, "return when they have ended");
  stop_command->callback(
      [&context, stopped, and_wait] { context.action = [&context, stopped, and_wait] { return stop(context, *stopped, *and_wait); }; });

  const auto again = std::make_shared<std::string>();
  const auto follow = std::make_shared<bool>(false);
  CLI::App* rerun_command = app.add_subcommand("rerun", "submit the same job again, on a new cluster");
  rerun_command->add_option("job", *again, "id, unique prefix, name, or last")->required();
  rerun_command->add_flag("-f,--follow", *follow, "then do as `helio run` does");
  const auto quiet = std::make_shared<bool>(false);
  rerun_command->add_flag("-q,--quiet", *quiet, "with --follow: only the entrypoint's output");
  rerun_command->callback([&context, again, follow, quiet] {
    context.action = [&context, again, follow, quiet] { return rerun(context, *again, *follow, *quiet); };
  });

  const auto removed = std::make_shared<std::vector<std::string>>();
  CLI::App* rm_command = app.add_subcommand("rm", "remove ended jobs with their logs and files");
  rm_command->add_option("job", *removed, "ids, unique prefixes, names, or last")->required();
  rm_command->callback([&context, removed] { context.action = [&context, removed] { return rm(context, *removed); }; });
}

}  // namespace

void add_job_commands(CLI::App& app, Context& context) {
  const auto ps_flags = std::make_shared<PsFlags>();
  CLI::App* ps_command = app.add_subcommand("ps", "list jobs, newest first");
  ps_command->add_flag("-a,--all", ps_flags->all, "every job, not only the newest");
  ps_command->add_option("-n,--limit", ps_flags->limit, "how many (default 20)")->check(CLI::PositiveNumber);
  ps_command->add_option("--state", ps_flags->state, "only jobs in this state");
  ps_command->add_flag("--ids", ps_flags->ids, "only ids, for scripts");
  ps_command->callback([&context, ps_flags] { context.action = [&context, ps_flags] { return ps(context, *ps_flags); }; });

  const auto shown = std::make_shared<std::string>("last");
  CLI::App* show_command = app.add_subcommand("show", "a job: state, attempts, where the time went, verdicts, nodes");
  show_command->add_option("job", *shown, "id, unique prefix, name, or last (default)");
  show_command->callback([&context, shown] { context.action = [&context, shown] { return show(context, *shown); }; });

  const auto explained = std::make_shared<std::string>("last");
  CLI::App* explain_command = app.add_subcommand("explain", "why a job is where it is, and what would help");
  explain_command->add_option("job", *explained, "id, unique prefix, name, or last (default)");
  explain_command->callback([&context, explained] { context.action = [&context, explained] { return explain(context, *explained); }; });

  const auto event_flags = std::make_shared<EventsFlags>();
  CLI::App* events_command = app.add_subcommand("events", "what happened: of one job, or the last of everything");
  events_command->add_option("job", event_flags->job, "id, unique prefix, name, or last");
  events_command->add_option("-n,--limit", event_flags->limit, "without a job: how many of the last (default 100)")
      ->check(CLI::PositiveNumber);
  events_command->add_option("--since", event_flags->since, "only after this revision; 0: all that are kept");
  events_command->add_flag("-f,--follow", event_flags->follow, "and what happens from now on");
  events_command->callback([&context, event_flags] { context.action = [&context, event_flags] { return events(context, *event_flags); }; });

  add_ending_commands(app, context);
}

}  // namespace helio::cli
