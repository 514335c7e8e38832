#include "cli/commands.h"

#include "cli/context.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

namespace helio::cli {
namespace {

void print_error(const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "helio: {}\n", error.text());
}

/// CLI11 takes words in reverse order.
int parse(CLI::App& app, std::vector<std::string> args) {
  std::ranges::reverse(args);
  try {
    app.parse(std::move(args));
  } catch (const CLI::Success& help) {
    return app.exit(help) == 0 ? -1 : cli_exit_code(ErrorCode::internal);
  } catch (const CLI::ParseError& error) {
    print_error(Error(ErrorCode::invalid_argument, std::string(error.what()) + "; `helio --help` and `helio COMMAND --help` tell more"));
    return cli_exit_code(ErrorCode::invalid_argument);
  }
  return 0;
}

}  // namespace

int run_program(std::vector<std::string> args) {
  auto context = context_from_environment();
  if (!context) {
    print_error(context.error());
    return cli_exit_code(context.error().code());
  }
  // What stands after "--" is the user's command: it is taken off before anything looks at it.
  if (const auto dashes = std::ranges::find(args, "--"); dashes != args.end()) {
    context->rest.assign(dashes + 1, args.end());
    args.erase(dashes, args.end());
  }
  CLI::App app("heliostat: run Ray jobs on clusters that it makes, watches and takes down", "helio");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("-o,--output", context->output_name, "table (default), json or yaml")->check(CLI::IsMember({"table", "json", "yaml"}));
  app.add_option("--url", context->url, "of the daemon (default: $HELIOSTAT_URL, else the one of this home)");
  app.add_option("--home", context->home.root, "data folder (default: $HELIOSTAT_HOME, else ~/.heliostat)");
  app.set_version_flag("--version", std::string("helio ") + HELIO_VERSION);
  add_submit_commands(app, *context);
  add_job_commands(app, *context);
  add_log_commands(app, *context);
  add_file_commands(app, *context);
  add_pool_commands(app, *context);
  add_system_commands(app, *context);
  add_doctor_command(app, *context);
  add_completion_commands(app, *context);
  if (const int parsed = parse(app, std::move(args)); parsed != 0) return std::max(parsed, 0);
  if (!context->action) {
    print_error(Error(ErrorCode::invalid_argument, "nothing to do; `helio --help` lists the commands"));
    return cli_exit_code(ErrorCode::invalid_argument);
  }
  const auto code = context->action();
  std::fflush(stdout);
  if (code) return *code;
  print_error(code.error());
  return cli_exit_code(code.error().code());
}

}  // namespace helio::cli
