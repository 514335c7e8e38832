// cp and exec.

#include "base/base64.h"
#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/local_file.h"
#include "cli/table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  ///< as the kernel follows

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

/// The whole content to a descriptor, from the start.
Result<void> pour(const TempFile& content, int to) {
  std::string buffer(64U << 10U, '\0');
  off_t at = 0;
  while (true) {
    const ssize_t n = ::pread(content.fd(), buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + content.path()));
    if (n == 0) return {};
    HELIO_CHECK_OK(write_all(to, std::string_view(buffer).substr(0, static_cast<std::size_t>(n))));
    at += n;
  }
}

/// Where the links at `to` lead, whether or not something stands there.
Result<fs::path> behind_links(fs::path to) {
  std::error_code error;
  for (int hops = 0; fs::is_symlink(to, error); ++hops) {
    if (hops == kMostLinks) return fail(ErrorCode::invalid_argument, "{} is a link that leads to itself", to.string());
    const fs::path target = fs::read_symlink(to, error);
    if (error) return fail(system_error(error.value(), "read link " + to.string()));
    to = target.is_absolute() ? target : to.parent_path() / target;
  }
  return to;
}

/// A new or replaced regular file, in one step: a reader sees the former content or all of the new one.
Result<void> replace(const TempFile& content, const fs::path& to, mode_t mode, const struct stat* former) {
  std::string part = to.string() + ".XXXXXX";
  const UniqueFd fd(::mkostemp(part.data(), O_CLOEXEC));
  if (!fd.valid()) return fail(system_error(errno, "write " + to.string()));
  Result<void> done = pour(content, fd.get());
  // Another user's file stays theirs where the system lets us; that it does not is no reason to keep the content from them.
  if (done && former != nullptr) [[maybe_unused]]
    const int kept = ::fchown(fd.get(), former->st_uid, former->st_gid);
  if (done && ::fchmod(fd.get(), mode) != 0) done = fail(system_error(errno, "write " + to.string()));
  if (done && ::rename(part.c_str(), to.c_str()) != 0) done = fail(system_error(errno, "write " + to.string()));
  if (!done) ::unlink(part.c_str());
  return done;
}

/// What is not a regular file (a device, a fifo) is written into; replacing it would take it from everybody else on this machine.
Result<void> place(const TempFile& content, const fs::path& to) {
  std::error_code error;
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), error);
  struct stat there{};
  if (::stat(to.c_str(), &there) != 0) {
    if (errno != ENOENT) return fail(system_error(errno, "write " + to.string()));
    HELIO_TRY(target, behind_links(to));
    return replace(content, target, 0644, nullptr);
  }
  if (S_ISDIR(there.st_mode)) return fail(ErrorCode::invalid_argument, "{} is a folder; a file of the job would replace it", to.string());
  if (!S_ISREG(there.st_mode)) {
    const UniqueFd fd(::open(to.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
    if (!fd.valid()) return fail(system_error(errno, "write " + to.string()));
    return pour(content, fd.get());
  }
  // Root could write it all the same: whoever took the bit away wants it kept.
  if ((there.st_mode & S_IWUSR) == 0) {
    return fail(ErrorCode::permission_denied, "{} is write-protected; `chmod u+w` it first, or name another file", to.string());
  }
  const fs::path target = fs::canonical(to, error);
  if (error) return fail(system_error(error.value(), "write " + to.string()));
  return replace(content, target, there.st_mode & 07777U, &there);
}

/// One file to standard output.
Result<void> show(ApiClient& api, const std::string& job, const std::string& path, const std::string& source) {
  HELIO_TRY(found, fetch(api, job, path));
  if (found.listing) return fail(ErrorCode::invalid_argument, "{} is a folder; name a file of it to write to standard output", source);
  return pour(found.content, STDOUT_FILENO);
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
  if (destination == "-") {
    HELIO_CHECK_OK(show(*api, id, path, source));
    return 0;
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
  cp_command->add_option("to", *destination, "file or folder here; - for standard output");
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
