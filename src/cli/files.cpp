// cp and exec.

#include "cli/api_client.h"
#include "cli/base64.h"
#include "cli/context.h"
#include "cli/local_file.h"
#include "cli/table.h"

#include <fcntl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

std::string files_target(const std::string& job, const std::string& path) {
  return "/v1/jobs/" + net::url_encode(job) + "/files" + query({{"path", path}});
}

std::string text_member(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// What stands at a path of a job's outputs: a listing, or the content of a file in `content`.
struct Fetched {
  std::optional<json::Array> listing;
  TempFile content;
};

Result<Fetched> fetch(ApiClient& api, const std::string& job, const std::string& path) {
  HELIO_TRY(file, TempFile::create());
  std::optional<Error> failed;
  HELIO_TRY(headers, api.download(files_target(job, path), [&](std::string_view bytes) {
    if (auto ok = write_all(file.fd(), bytes); !ok) failed = std::move(ok).error();
    return !failed.has_value();
  }));
  if (failed) return fail(std::move(*failed));
  const auto type = net::find_header(headers, "Content-Type");
  if (!type || !type->starts_with("application/json")) return Fetched{std::nullopt, std::move(file)};
  HELIO_TRY(text, read_file(file.path()));
  HELIO_TRY(reply, json::parse(text));
  json::Value* items = reply.is_object() ? reply.get_object().if_contains("items") : nullptr;
  if (items == nullptr || !items->is_array()) return fail(ErrorCode::internal, "the daemon's file list has no items");
  return Fetched{std::move(items->get_array()), std::move(file)};
}

Result<void> place(const TempFile& content, const fs::path& to) {
  std::error_code error;
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), error);
  const std::string part = to.string() + ".part";
  fs::copy_file(content.path(), part, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(part, fs::perms(0644), error);
  if (!error) fs::rename(part, to, error);
  if (!error) return {};
  std::error_code ignored;
  fs::remove(part, ignored);
  return fail(system_error(error.value(), "write " + to.string()));
}

Result<std::int64_t> copy_tree(ApiClient& api, const std::string& job, const std::string& path, const fs::path& to) {
  HELIO_TRY(found, fetch(api, job, path));
  if (!found.listing) {
    HELIO_CHECK_OK(place(found.content, to));
    return 1;
  }
  std::int64_t count = 0;
  for (const json::Value& item : *found.listing) {
    const std::string name = text_member(item.get_object(), "name");
    // A listing that names a way out of the target is not followed.
    if (name.empty() || name == "." || name == ".." || name.contains('/')) continue;
    if (text_member(item.get_object(), "kind") == "other") continue;
    HELIO_TRY(copied, copy_tree(api, job, path.empty() ? name : path + "/" + name, to / name));
    count += copied;
  }
  return count;
}

Result<int> list_files(const Context& context, const json::Array& listing) {
  if (context.output() != Output::table) {
    print_document(context, listing);
    return 0;
  }
  Table table({"NAME", "KIND", "SIZE"});
  for (const json::Value& item : listing) {
    const json::Object& entry = item.get_object();
    const json::Value* size = entry.if_contains("size");
    table.row(
        {text_member(entry, "name"), text_member(entry, "kind"), format_bytes({size == nullptr ? 0 : size->to_number<std::int64_t>()})});
  }
  table.print();
  return 0;
}

Result<int> cp(const Context& context, const std::string& source, const std::string& destination) {
  const std::size_t colon = source.find(':');
  const std::string what = source.substr(0, colon);
  std::string path = colon == std::string::npos ? std::string() : source.substr(colon + 1);
  while (path.ends_with('/')) path.pop_back();
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(what));
  if (destination.empty()) {
    HELIO_TRY(found, fetch(*api, id, path));
    if (found.listing) return list_files(context, *found.listing);
    return fail(ErrorCode::invalid_argument, "{} is a file; name where to copy it", source);
  }
  fs::path to = destination;
  std::error_code error;
  if (!path.empty() && fs::is_directory(to, error)) to /= fs::path(path).filename();
  HELIO_TRY(count, copy_tree(*api, id, path, to));
  fmt::print("{} file{} to {}\n", count, count == 1 ? "" : "s", to.string());
  return 0;
}

// --- exec -------------------------------------------------------------------------------------------------------------------------

struct ExecFlags {
  std::string job = "last";
  std::string node = "head";
  int seconds = 60;
};

/// One line of the reply; the last one carries the exit code.
Result<std::optional<int>> exec_line(std::string_view text) {
  HELIO_TRY(value, json::parse(text));
  const json::Object* line = value.if_object();
  if (line == nullptr) return fail(ErrorCode::internal, "the daemon sent '{}'", text);
  if (const std::string error = text_member(*line, "error"); !error.empty()) return fail(ErrorCode::unavailable, "{}", error);
  if (const std::string data = text_member(*line, "data"); !data.empty()) {
    const auto bytes = base64_decode(data);
    if (!bytes) return fail(ErrorCode::internal, "the daemon sent damaged output");
    HELIO_CHECK_OK(write_all(STDOUT_FILENO, *bytes));
  }
  const json::Value* code = line->if_contains("exit_code");
  if (code == nullptr || !code->is_int64()) return std::optional<int>();
  return std::optional<int>(static_cast<int>(code->get_int64()));
}

Result<int> exec(const Context& context, const ExecFlags& flags) {
  if (context.rest.empty()) return fail(ErrorCode::invalid_argument, "put the command after --: helio exec JOB -- nvidia-smi");
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(id, api->resolve_job(flags.job));
  json::Array argv;
  for (const std::string& word : context.rest) argv.emplace_back(word);
  net::ClientRequest request;
  request.method = "POST";
  request.target = "/v1/jobs/" + net::url_encode(id) + "/exec";
  request.headers = {{"Content-Type", "application/json"}};
  request.body = json::dump(json::Object{{"node", flags.node}, {"argv", std::move(argv)}, {"seconds", flags.seconds}});
  request.deadline = std::chrono::seconds(flags.seconds) + 30s;
  std::string pending;
  std::optional<int> code;
  std::optional<Error> failed;
  HELIO_CHECK_OK(api->stream(request, [&](std::string_view bytes) {
    pending.append(bytes);
    for (std::size_t end = pending.find('\n'); end != std::string::npos && !failed; end = pending.find('\n')) {
      auto line = exec_line(std::string_view(pending).substr(0, end));
      pending.erase(0, end + 1);
      if (!line)
        failed = std::move(line).error();
      else if (*line)
        code = **line;
    }
    return !failed.has_value();
  }));
  if (failed) return fail(std::move(*failed));
  if (!code) return fail(ErrorCode::unavailable, "the node went away before the command ended");
  return *code;
}

}  // namespace

void add_file_commands(CLI::App& app, Context& context) {
  const auto source = std::make_shared<std::string>();
  const auto destination = std::make_shared<std::string>();
  CLI::App* cp_command = app.add_subcommand("cp", "copy a job's outputs: helio cp JOB[:PATH] TO; without TO: list them");
  cp_command->add_option("source", *source, "JOB[:PATH]: the job and the path in its outputs")->required();
  cp_command->add_option("to", *destination, "file or folder here");
  cp_command->callback(
      [&context, source, destination] { context.action = [&context, source, destination] { return cp(context, *source, *destination); }; });

  const auto flags = std::make_shared<ExecFlags>();
  CLI::App* exec_command = app.add_subcommand("exec", "run a command on a node of a live job: helio exec JOB -- COMMAND");
  exec_command->add_option("job", flags->job, "id, unique prefix, name, or last (default)");
  exec_command->add_option("--node", flags->node, "head (default), w1, w2, …");
  exec_command->add_option("--seconds", flags->seconds, "kill it after so long (default 60)")->check(CLI::PositiveNumber);
  exec_command->callback([&context, flags] { context.action = [&context, flags] { return exec(context, *flags); }; });
}

}  // namespace helio::cli
