// logs.

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/local_file.h"
#include "cli/table.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>

namespace helio::cli {
namespace {

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

Result<int> list_streams(const Context& context, ApiClient& api, const std::string& id) {
  HELIO_TRY(reply, api.get("/v1/jobs/" + id + "/streams"));
  if (context.output() != Output::table) {
    print_document(context, reply);
    return 0;
  }
  const json::Value* items = reply.is_object() ? reply.get_object().if_contains("items") : &reply;
  Table table({"NODE", "STREAM", "KIND", "SIZE", "ENDED"});
  for (const json::Value& item : items != nullptr && items->is_array() ? items->get_array() : json::Array{}) {
    const json::Object& stream = item.get_object();
    const auto text = [&](const char* name) {
      const json::Value* value = stream.if_contains(name);
      return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
    };
    const json::Value* size = stream.if_contains("size");
    const json::Value* ended = stream.if_contains("ended");
    table.row({text("node"), text("stream"), text("kind"), format_bytes({size == nullptr ? 0 : size->to_number<std::int64_t>()}),
               ended != nullptr && ended->is_bool() && ended->get_bool() ? "yes" : "no"});
  }
  table.print();
  return 0;
}

/// A stream that an ended job never had: an empty answer would hide the misspelling. A live job may still open it.
Result<void> check_stream(ApiClient& api, const std::string& id, const std::string& stream) {
  HELIO_TRY(job, api.job(id));
  if (stream.empty() || !is_terminal(job.state)) return {};
  HELIO_TRY(reply, api.get("/v1/jobs/" + id + "/streams"));
  const json::Value* items = reply.is_object() ? reply.get_object().if_contains("items") : nullptr;
  if (items == nullptr || !items->is_array()) return {};
  for (const json::Value& item : items->get_array()) {
    const json::Value* name = item.is_object() ? item.get_object().if_contains("stream") : nullptr;
    if (name != nullptr && name->is_string() && std::string_view(name->get_string()) == stream) return {};
  }
  return fail(ErrorCode::not_found, "{} has no stream '{}'; `helio logs -l {}` lists them", id, stream, id);
}

Result<int> logs(const Context& context, const LogFlags& flags) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(flags.job));
  if (flags.list) return list_streams(context, *api, id);
  HELIO_CHECK_OK(check_stream(*api, id, flags.stream));
  std::vector<std::pair<std::string, std::string>> selection{{"attempt", flags.attempt > 0 ? std::to_string(flags.attempt) : ""},
                                                             {"node", flags.node},
                                                             {"stream", flags.stream},
                                                             {"since", flags.since},
                                                             {"grep", flags.grep}};
  const auto write = [](std::string_view bytes) { return write_all(STDOUT_FILENO, bytes); };
  const bool whole = flags.since.empty() && flags.grep.empty() && flags.last.empty();
  if (flags.follow && whole) {
    // Every byte from the start: a broken connection is taken up again where it broke.
    const std::atomic<bool> never{false};
    HELIO_CHECK_OK(follow_log(context, id, {.selection = selection}, never, write));
    return 0;
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
  HELIO_CHECK_OK(api->stream(request, [&](std::string_view bytes) {
    if (auto ok = write(bytes); !ok) failed = std::move(ok).error();
    return !failed.has_value();
  }));
  if (failed) return fail(std::move(*failed));
  return 0;
}

}  // namespace

void add_log_commands(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<LogFlags>();
  CLI::App* command = app.add_subcommand("logs", "output of a job: its entrypoint's, or any stream of any node");
  command->add_option("job", flags->job, "id, unique prefix, name, or last (default)");
  command->add_option("--attempt", flags->attempt, "only this attempt (default: all, one after the other)");
  command->add_option("--node", flags->node, "head, w1, w2, … (default: the node that ran the entrypoint)");
  command->add_option("--stream", flags->stream, "driver (default), or a name that --list shows");
  command->add_option("--since", flags->since, "a time, or how far back: 10m");
  command->add_option("--grep", flags->grep, "only lines that match this regular expression (RE2)");
  command->add_option("--last", flags->last, "only the last so many bytes, such as 64KiB");
  command->add_flag("-f,--follow", flags->follow, "go on until the job has ended");
  command->add_flag("-l,--list", flags->list, "list the streams");
  command->callback([&context, flags] { context.action = [&context, flags] { return logs(context, *flags); }; });
}

}  // namespace helio::cli
