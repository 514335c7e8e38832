// run and submit: from flags or a job file to a job.

#include "base/rng.h"
#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/daemon.h"
#include "cli/follow.h"
#include "cli/hints.h"
#include "cli/spec_flags.h"
#include "cli/spec_options.h"
#include "cli/table.h"
#include "cli/upload.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

namespace helio::cli {
namespace {

struct SubmitFlags {
  SpecFlags spec;
  bool dry_run = false;
  bool follow = false;  ///< submit: as run does
  bool quiet = false;   ///< run: no stages
};

void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

/// Where relative paths of a job file start: beside the file.
std::string base_folder(const SpecFlags& flags) {
  if (flags.file.empty()) return ".";
  const std::string parent = std::filesystem::path(flags.file).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Flags name paths below the current folder, a job file below its own: both are made absolute before they meet.
Result<SpecFlags> with_absolute_paths(SpecFlags flags) {
  const auto absolute = [](std::string& path) -> Result<void> {
    if (!path.empty() && !path.contains("://")) {
      std::error_code error;
      const std::filesystem::path whole = std::filesystem::absolute(path, error);
      if (error) return fail(system_error(error.value(), "find " + path + " below the current folder"));
      path = whole.lexically_normal().string();
    }
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return {};
  };
  HELIO_CHECK_OK(absolute(flags.working_dir));
  for (std::string& module : flags.py_modules) HELIO_CHECK_OK(absolute(module));
  return flags;
}

struct Prepared {
  json::Object spec;  ///< as it is posted
  std::vector<Upload> uploads;
};

/// Said before the submit: the job would fail minutes later with "no such file".
void hint_at_files(const Context& context, const json::Object& spec) {
  const json::Value* runtime_env = spec.if_contains("runtime_env");
  if (runtime_env != nullptr && runtime_env->is_object() && runtime_env->get_object().contains("working_dir")) return;
  if (const auto file = file_left_behind(context.rest)) {
    say(fmt::format("hint      {} is in this folder but is not sent along: add --working-dir .", *file));
  }
}

Result<Prepared> prepare(const Context& context, const SubmitFlags& flags) {
  Prepared out;
  HELIO_TRY(given, with_absolute_paths(flags.spec));
  HELIO_TRY(spec, build_spec(given, context.rest, from_environment));
  if (!flags.quiet) hint_at_files(context, spec);
  HELIO_TRY(uploads, pack_code(spec, base_folder(flags.spec), flags.spec.excludes));
  out.spec = std::move(spec);
  out.uploads = std::move(uploads);
  return out;
}

/// The spec is checked before its code is sent: a wrong field is told without waiting for an upload that nobody needs.
Result<void> send_code(ApiClient& api, const Prepared& prepared, bool quiet) {
  if (prepared.uploads.empty()) return {};
  HELIO_CHECK_OK(api.send("POST", "/v1/jobs:preview", prepared.spec));
  return send_packages(api, prepared.uploads, [&](const std::string& what) {
    if (!quiet) say("code      " + what);
  });
}

std::string gang_line(const json::Object& preview) {
  std::string out;
  const json::Value* gang = preview.if_contains("gang");
  if (gang == nullptr || !gang->is_array()) return out;
  std::vector<std::pair<std::string, int>> counted;
  for (const json::Value& item : gang->get_array()) {
    const auto placement = json::decode<model::Placement>(item, json::Unknown::ignore);
    if (!placement) continue;
    const model::Resources& r = placement->resources;
    std::string shape =
        fmt::format("{} on {} ({} CPU, {}{})", placement->role == model::Role::head ? "head" : placement->group, placement->flavor,
                    format_cpu(r.cpu), format_bytes(r.memory), r.gpus > 0 ? fmt::format(", {} GPU", r.gpus) : "");
    if (!counted.empty() && counted.back().first == shape) {
      ++counted.back().second;
    } else {
      counted.emplace_back(std::move(shape), 1);
    }
  }
  for (const auto& [shape, count] : counted) out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", count, shape);
  return out;
}

Result<int> dry_run(ApiClient& api, const Context& context, const json::Object& spec) {
  HELIO_TRY(reply, api.send("POST", "/v1/jobs:preview", spec));
  if (context.output() != Output::table) {
    print_document(context, reply);
    return 0;
  }
  const json::Object& preview = reply.get_object();
  Context yaml = context;
  yaml.output_name = "yaml";
  if (const json::Value* resolved = preview.if_contains("spec")) print_document(yaml, *resolved);
  if (const std::string gang = gang_line(preview); !gang.empty()) say("# nodes   " + gang);
  if (const json::Value* warnings = preview.if_contains("warnings"); warnings != nullptr && warnings->is_array()) {
    for (const json::Value& warning : warnings->get_array()) say("# warning " + std::string(warning.get_string()));
  }
  if (const json::Value* would = preview.if_contains("would"); would != nullptr && would->is_string()) {
    say("# " + std::string(would->get_string()));
  }
  return 0;
}

/// The key makes a repetition after a broken connection harmless: the daemon answers the first reply again.
Result<model::Job> post(ApiClient& api, const json::Object& spec) {
  SystemRng rng;
  const net::Headers headers{{"Idempotency-Key", random_hex(rng, 16)}};
  auto reply = api.send("POST", "/v1/jobs", spec, headers);
  if (!reply && reply.error().code() == ErrorCode::unavailable) reply = api.send("POST", "/v1/jobs", spec, headers);
  if (!reply) return fail(std::move(reply).error());
  return json::decode<model::Job>(*reply, json::Unknown::ignore);
}

void announce(const model::Job& job) {
  std::int64_t workers = 0;
  for (const model::WorkerGroup& group : job.spec.workers) workers += group.count;
  const std::string nodes =
      job.spec.cluster ? "in cluster " + *job.spec.cluster
                       : fmt::format("1 head{}", workers == 0 ? "" : fmt::format(" + {} worker{}", workers, workers == 1 ? "" : "s"));
  say(fmt::format("{}  {}: {} on image {}", job.id.value, job.spec.name, nodes, job.spec.image));
  for (const std::string& warning : job.warnings) say("warning   " + warning);
}

Result<int> submit(const Context& context, const SubmitFlags& flags) {
  if (const auto why = no_job_file(flags.spec.file)) {
    std::error_code error;
    const bool there = std::filesystem::exists(flags.spec.file, error);
    return fail(there ? ErrorCode::invalid_argument : ErrorCode::not_found, "{}", *why);
  }
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(prepared, prepare(context, flags));
  if (flags.dry_run) return dry_run(*api, context, prepared.spec);
  HELIO_CHECK_OK(send_code(*api, prepared, flags.quiet));
  HELIO_TRY(job, post(*api, prepared.spec));
  if (flags.follow) {
    announce(job);
    return follow_to_end(context, job.id.value, {});
  }
  if (context.output() != Output::table) {
    print_document(context, json::encode(job));
    return 0;
  }
  fmt::print("{}\n", job.id.value);
  for (const std::string& warning : job.warnings) say("warning: " + warning);
  say(fmt::format("follow it with `helio logs -f {0}`, wait for it with `helio wait {0}`", job.id.value));
  return 0;
}

Result<int> run(const Context& context, const SubmitFlags& flags) {
  HELIO_TRY(up, daemon_up(context));
  if (up.started) say("heliostat is up at " + up.url);
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(prepared, prepare(context, flags));
  if (flags.dry_run) return dry_run(*api, context, prepared.spec);
  HELIO_CHECK_OK(send_code(*api, prepared, flags.quiet));
  HELIO_TRY(job, post(*api, prepared.spec));
  if (!flags.quiet) announce(job);
  return follow_to_end(context, job.id.value, {.stages = !flags.quiet});
}

void add_entrypoint_options(CLI::App& command, SpecFlags& f) {
  command.add_option("--cluster", f.cluster, "long-lived cluster to run in, instead of one of the job's own")->group("Shape");
  command.add_option("--num-cpus", f.num_cpus, "CPUs that the entrypoint asks Ray for: places it on a worker")->group("Shape");
  command.add_option("--num-gpus", f.num_gpus, "GPUs that the entrypoint asks Ray for")->group("Shape");
  command.add_option("--memory", f.memory, "memory that the entrypoint asks Ray for, such as 2GiB")->group("Shape");
  command.add_option("--script", f.script, "file whose content is the entrypoint")->group("Code");
  command.add_option("--language", f.language, "of --script: bash, sh, python (default: by its suffix)")->group("Code");
  command.add_option("--command", f.command, "entrypoint as one shell line, instead of words after --")->group("Code");
  command.add_option("--name", f.name, "name of the job (default: from its entrypoint)")->group("Policy");
  command.add_option("--completion", f.completion, "driver (default) or all: whose exit decides")->group("Policy");
}

void add_code_options(CLI::App& command, SpecFlags& f) {
  command.add_option("--working-dir", f.working_dir, "folder or zip to upload and start in")->group("Code");
  command.add_option("--py-module", f.py_modules, "Python package folder or zip to upload (repeatable)")
      ->allow_extra_args(false)
      ->group("Code");
  command.add_option("--exclude", f.excludes, "pattern of files to leave out of uploads (repeatable)")
      ->allow_extra_args(false)
      ->group("Code");
  command.add_option("--pip", f.pip, "package to install for the job, such as requests==2.32 (repeatable)")
      ->allow_extra_args(false)
      ->group("Code");
  command.add_option("--requirements", f.requirements, "file of packages to install")->group("Code");
  command.add_option("--runtime-env", f.runtime_env, "Ray's runtime_env: JSON, or a YAML or JSON file")->group("Code");
}

void add_spec_options(CLI::App& command, SubmitFlags& flags) {
  add_node_options(command, flags.spec);
  add_code_options(command, flags.spec);
  add_entrypoint_options(command, flags.spec);
  add_policy_options(command, flags.spec);
  command.add_flag("--dry-run", flags.dry_run, "show the resolved spec and what would happen; nothing is stored or uploaded");
}

}  // namespace

void add_submit_commands(CLI::App& app, Context& context) {
  const auto run_flags = std::make_shared<SubmitFlags>();
  CLI::App* run_command = app.add_subcommand("run", "run a command as a job, follow it, exit with its code: helio run [flags] -- COMMAND");
  run_command->add_option("-f,--file", run_flags->spec.file, "job file, YAML or JSON; flags win over it");
  add_spec_options(*run_command, *run_flags);
  run_command->add_flag("-q,--quiet", run_flags->quiet, "only the entrypoint's output");
  run_command->callback([&context, run_flags] { context.action = [&context, run_flags] { return run(context, *run_flags); }; });

  const auto submit_flags = std::make_shared<SubmitFlags>();
  CLI::App* submit_command =
      app.add_subcommand("submit", "put a job into the queue and return: helio submit FILE, or flags and -- COMMAND");
  submit_command->add_option("file", submit_flags->spec.file, "job file, YAML or JSON; flags win over it");
  add_spec_options(*submit_command, *submit_flags);
  submit_command->add_flag("--follow", submit_flags->follow, "then do as `helio run` does");
  submit_command->callback(
      [&context, submit_flags] { context.action = [&context, submit_flags] { return submit(context, *submit_flags); }; });
}

}  // namespace helio::cli
