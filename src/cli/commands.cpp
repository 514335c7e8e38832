#include "cli/commands.h"

#include "cli/context.h"
#include "cli/hints.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

namespace helio::cli {
namespace {

void print_error(const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "helio: {}\n", error.text());
}

/// The first word that no command has as its name, when it stands where a command belongs.
std::optional<std::string> unknown_command(const CLI::App& app, const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-o" || args[i] == "--output" || args[i] == "--url" || args[i] == "--ca" || args[i] == "--home") {
      ++i;
    } else if (!args[i].starts_with('-')) {
      const bool known = !app.get_subcommands([&](const CLI::App* sub) { return sub->check_name(args[i]); }).empty();
      return known ? std::nullopt : std::optional(args[i]);
    }
  }
  return std::nullopt;
}

/// Says that a command stands after "--", which the parser never sees.
class UsageFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    while (usage.ends_with('\n')) usage.pop_back();
    return usage + (takes_command(app->get_name()) ? " [-- COMMAND...]\n" : "\n");
  }
};

/// Words that the chosen subcommand has no use for, and what to type instead.
std::string about_extras(const CLI::App& app, const std::vector<std::string>& args) {
  const std::vector<std::string> extras = app.remaining(true);
  const auto subs = app.get_subcommands();
  if (extras.empty() || subs.empty()) return "some words are not expected; `helio --help` tells more";
  const std::string name = subs.front()->get_name();
  std::vector<std::string> words = args;
  if (const auto at = std::ranges::find(words, name); at != words.end()) words.erase(words.begin(), at + 1);
  return unexpected_words(name, words, extras);
}

/// CLI11 takes words in reverse order.
int parse(CLI::App& app, std::vector<std::string> args) {
  const std::vector<std::string> typed = args;
  std::ranges::reverse(args);
  try {
    app.parse(std::move(args));
  } catch (const CLI::Success& help) {
    return app.exit(help) == 0 ? -1 : cli_exit_code(ErrorCode::internal);
  } catch (const CLI::ExtrasError&) {
    print_error(Error(ErrorCode::invalid_argument, about_extras(app, typed)));
    return cli_exit_code(ErrorCode::invalid_argument);
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
  app.formatter(std::make_shared<UsageFormatter>());
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("-o,--output", context->output_name, "table (default), json or yaml")->check(CLI::IsMember({"table", "json", "yaml"}));
  app.add_option("--url", context->url, "of the daemon (default: $HELIOSTAT_URL, else the one of this home)");
  app.add_option("--ca", context->roots, "PEM file of certificates to trust for https (default: $HELIOSTAT_CA, else the system's)");
  app.add_option("--home", context->home.root, "data folder (default: $HELIOSTAT_HOME, else ~/.heliostat)");
  app.set_version_flag("--version", std::string("helio ") + HELIO_VERSION);
  for (const auto add :
       {add_submit_commands, add_job_commands, add_cluster_commands, add_log_commands, add_dashboard_command, add_connect_command,
        add_file_commands, add_pool_commands, add_token_commands, add_system_commands, add_doctor_command, add_completion_commands}) {
    add(app, *context);
  }
  if (args.empty()) {
    fmt::print(stderr, "{}", app.help());
    return cli_exit_code(ErrorCode::invalid_argument);
  }
  if (const auto word = unknown_command(app, args)) {
    print_error(Error(ErrorCode::invalid_argument, "no command '" + *word + "'; `helio --help` lists them"));
    return cli_exit_code(ErrorCode::invalid_argument);
  }
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
