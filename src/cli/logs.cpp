// logs.

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/local_file.h"
#include "cli/stream_choice.h"
#include "cli/table.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace helio::cli {
namespace {

constexpr std::string_view kDriver = "driver";

struct LogFlags {
  std::string job = "last";
  int attempt = 0;
  std::string node;
  std::string stream;
  std::string since;
  std::string grep;
  std::string last;  ///< bytes from the end
  bool follow = false;
  bool list = false;
};

std::string text_member(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// Attempt ids end with their number.
std::int64_t number_of(std::string_view attempt_id) {
  return std::atoll(std::string(attempt_id.substr(attempt_id.rfind('-') + 1)).c_str());
}

StreamRow row_of(const json::Object& stream) {
  StreamRow row;
  row.attempt = number_of(text_member(stream, "attempt"));
  row.node = short_node(text_member(stream, "node"));
  row.stream = text_member(stream, "stream");
  row.kind = text_member(stream, "kind");
  if (const json::Value* size = stream.if_contains("size"); size != nullptr) row.size = size->to_number<std::int64_t>();
  if (const json::Value* ended = stream.if_contains("ended"); ended != nullptr && ended->is_bool()) row.ended = ended->get_bool();
  return row;
}

void print_streams(const std::vector<StreamRow>& rows) {
  const bool attempts = std::ranges::any_of(rows, [&](const StreamRow& row) { return row.attempt != rows.front().attempt; });
  std::vector<std::string> header{"NODE", "STREAM", "KIND", "SIZE", "ENDED"};
  if (attempts) header.insert(header.begin(), "ATTEMPT");
  Table table(header);
  for (const StreamRow& row : rows) {
    std::vector<std::string> cells{row.node, row.stream, row.kind, format_bytes({row.size}), row.ended ? "yes" : "no"};
    if (attempts) cells.insert(cells.begin(), std::to_string(row.attempt));
    table.row(std::move(cells));
  }
  table.print();
}

/// What there is to read, before anything is read.
struct Listing {
  model::Job job;
  std::string node;              ///< asked for, by its short name; empty: the entrypoint's
  json::Array documents;         ///< of the streams asked for
  std::vector<StreamRow> there;  ///< the same; without --node: of the node that ran the entrypoint
  std::vector<StreamRow> elsewhere;
  [[nodiscard]] std::string where() const { return !node.empty() ? node : there.empty() ? "the entrypoint's node" : there.front().node; }
};

Result<Listing> find_streams(ApiClient& api, const std::string& id, const LogFlags& flags) {
  Listing out;
  HELIO_TRY(job, api.job(id));
  HELIO_TRY(attempts, api.attempts(id));
  if (flags.attempt > 0 && std::ranges::none_of(attempts, [&](const model::Attempt& a) { return a.number == flags.attempt; })) {
    return fail(ErrorCode::not_found, "{} has no attempt {}; it has had {}", id, flags.attempt, attempts.size());
  }
  if (!flags.node.empty()) {
    HELIO_TRY(node, choose_node(job.spec, flags.node));
    out.node = node;
  }
  HELIO_TRY(items, api.list("/v1/jobs/" + id + "/streams"));
  for (const json::Value& item : items) {
    StreamRow row = row_of(item.get_object());
    if (flags.attempt > 0 && row.attempt != flags.attempt) continue;
    const auto attempt = std::ranges::find(attempts, row.attempt, &model::Attempt::number);
    const std::string entrypoint = attempt == attempts.end() ? std::string() : short_node(attempt->driver.log_node);
    const bool asked = out.node.empty() ? flags.list || entrypoint.empty() || row.node == entrypoint : row.node == out.node;
    if (asked) out.documents.push_back(item);
    (asked ? out.there : out.elsewhere).push_back(std::move(row));
  }
  out.job = std::move(job);
  return out;
}

void say(const std::string& line) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", line);
}

std::string why_nothing(const Listing& listing, const LogFlags& flags) {
  const model::Job& job = listing.job;
  const bool has_output = std::ranges::any_of(listing.there, [](const StreamRow& row) { return row.stream == kDriver && row.size > 0; });
  if (has_output && (!flags.grep.empty() || !flags.since.empty())) return "nothing of it matches --grep and --since";
  if (!is_terminal(job.state)) return fmt::format("no output yet: {}: {}", json::enum_name(job.state), job.reason);
  return fmt::format("no output: {}{}", json::enum_name(job.state), job.verdict ? ": " + job.verdict->message : "");
}

/// One stream over its attempts to stdout. Gives back how many bytes there were.
Result<std::int64_t> print_stream(const Context& context, ApiClient& api, const std::string& id, const LogFlags& flags,
                                  const std::string& stream) {
  std::vector<std::pair<std::string, std::string>> selection{{"attempt", flags.attempt > 0 ? std::to_string(flags.attempt) : ""},
                                                             {"node", flags.node.empty() ? "" : short_node(flags.node)},
                                                             {"stream", stream},
                                                             {"since", flags.since},
                                                             {"grep", flags.grep}};
  std::int64_t written = 0;
  const auto write = [&](std::string_view bytes) {
    written += static_cast<std::int64_t>(bytes.size());
    return write_all(STDOUT_FILENO, bytes);
  };
  const bool whole = flags.since.empty() && flags.grep.empty() && flags.last.empty();
  if (flags.follow && whole) {
    // Every byte from the start: a broken connection is taken up again where it broke.
    const std::atomic<bool> never{false};
    HELIO_CHECK_OK(follow_log(context, id, {.selection = selection}, never, write));
    return written;
  }
  if (!flags.last.empty()) {
    const auto bytes = parse_bytes(flags.last);
    if (!bytes) return fail(ErrorCode::invalid_argument, "--last takes a size such as 64KiB, not '{}'", flags.last);
    selection.emplace_back("offset", std::to_string(-bytes->n));
  }
  if (flags.follow) selection.emplace_back("follow", "true");
  net::ClientRequest request;
  request.target = "/v1/jobs/" + net::url_encode(id) + "/logs" + query(selection);
  request.deadline = flags.follow ? Duration(24h) : Duration(60s);
  std::optional<Error> failed;
  HELIO_CHECK_OK(api.stream(request, [&](std::string_view bytes) {
    if (auto ok = write(bytes); !ok) failed = std::move(ok).error();
    return !failed.has_value();
  }));
  if (failed) return fail(std::move(*failed));
  return written;
}

/// The streams to print; none: the answer has been given already.
Result<std::vector<std::string>> choose(const Listing& listing, const LogFlags& flags) {
  const bool live = !is_terminal(listing.job.state);
  const bool has_driver = std::ranges::find(listing.there, kDriver, &StreamRow::stream) != listing.there.end();
  if (flags.stream.empty() || flags.stream == kDriver) {
    // Another node ran the entrypoint: what this one has instead is shown, not silence.
    if (!has_driver && !listing.node.empty() && !listing.there.empty() && flags.stream.empty()) {
      say(fmt::format("the entrypoint did not run on {}; choose one of its streams with --stream:", listing.node));
      print_streams(listing.there);
      return std::vector<std::string>();
    }
    if (!has_driver && flags.follow && live) say(why_nothing(listing, flags));
    return std::vector<std::string>{std::string(kDriver)};
  }
  auto names = choose_streams(listing.there, listing.elsewhere, listing.where(), flags.stream);
  if (!names) {
    // A live job may still open it, and a follower waits for that.
    if (!live || !flags.follow || names.error().code() != ErrorCode::not_found) return names;
    say(fmt::format("{} has no stream '{}' yet", listing.where(), flags.stream));
    return std::vector{flags.stream};
  }
  if (flags.follow && names->size() > 1) {
    return fail(ErrorCode::invalid_argument, "--stream '{}' means {} streams, and only one can be followed", flags.stream, names->size());
  }
  return names;
}

Result<int> logs(const Context& context, const LogFlags& flags) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(flags.job));
  HELIO_TRY(listing, find_streams(*api, id, flags));
  if (flags.list) {
    if (context.output() != Output::table) {
      print_document(context, json::Object{{"items", listing.documents}});
    } else if (listing.there.empty()) {
      say(fmt::format("no streams yet: {}: {}", json::enum_name(listing.job.state), listing.job.reason));
    } else {
      print_streams(listing.there);
    }
    return 0;
  }
  HELIO_TRY(names, choose(listing, flags));
  std::int64_t written = 0;
  for (const std::string& name : names) {
    if (names.size() > 1) say(fmt::format("==> {} {} <==", listing.where(), name));
    HELIO_TRY(bytes, print_stream(context, *api, id, flags, name));
    written += bytes;
  }
  if (written == 0 && !names.empty() && !flags.follow) {
    const bool driver = names.front() == kDriver;
    say(driver ? why_nothing(listing, flags) : fmt::format("nothing in {} of {}", flags.stream, listing.where()));
  }
  return 0;
}

}  // namespace

void add_log_commands(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<LogFlags>();
  CLI::App* command = app.add_subcommand("logs", "output of a job: its entrypoint's, or any stream of any node");
  command->add_option("job", flags->job, "id, unique prefix, name, or last (default)");
  command->add_option("--attempt", flags->attempt, "only this attempt (default: all, one after the other)");
  command->add_option("--node", flags->node, "head, w1, w2, … (default: the node that ran the entrypoint)");
  command->add_option("--stream", flags->stream,
                      "driver (default), a name that --list shows, the beginning of one, or a pattern: 'worker-*'");
  command->add_option("--since", flags->since, "a time, or how far back: 10m");
  command->add_option("--grep", flags->grep, "only lines that match this regular expression (RE2)");
  command->add_option("--last", flags->last, "only the last so many bytes, such as 64KiB");
  command->add_flag("-f,--follow", flags->follow, "go on until the job has ended");
  command->add_flag("-l,--list", flags->list, "list the streams (with --node: of that node)");
  command->callback([&context, flags] { context.action = [&context, flags] { return logs(context, *flags); }; });
}

}  // namespace helio::cli
