#pragma once
// What every command gets: where the daemon is, how to print, and what to run after parsing.

#include "base/error.h"
#include "base/json/json.h"
#include "model/home.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace helio::cli {

enum class Output { table, json, yaml };

/// Exit codes of `run`, `wait` and `submit --wait` when the job did not end by its own entrypoint (docs/en/cli.md).
inline constexpr int kExitPlatform = 80;
inline constexpr int kExitStopped = 81;
inline constexpr int kExitDeadline = 82;
inline constexpr int kExitOwnFault = 83;
inline constexpr int kExitDetached = 84;

struct Context {
  model::Home home;
  std::string url;                ///< from --url or $HELIOSTAT_URL; empty: the daemon of this home
  std::string token;              ///< from $HELIOSTAT_TOKEN; empty: the home's admin token
  std::string roots;              ///< from --ca or $HELIOSTAT_CA: certificates that https trusts; empty: the system's
  std::string output_name;        ///< value of --output
  std::vector<std::string> rest;  ///< what stood after "--", verbatim
  /// Set by the parsed command's callback; returns the exit code.
  std::function<Result<int>()> action;

  [[nodiscard]] Output output() const {
    return output_name == "json" ? Output::json : output_name == "yaml" ? Output::yaml : Output::table;
  }
};

/// Home, URL and token from the environment. Error: precondition_failed without HELIOSTAT_HOME and HOME.
Result<Context> context_from_environment();

/// Prints a document in the chosen machine form; `table` prints JSON too (commands with a table print that instead).
void print_document(const Context& context, const json::Value& value);

// One function per command group: adds its subcommands to `app`.
void add_system_commands(CLI::App& app, Context& context);
void add_submit_commands(CLI::App& app, Context& context);
void add_job_commands(CLI::App& app, Context& context);
void add_cluster_commands(CLI::App& app, Context& context);
void add_log_commands(CLI::App& app, Context& context);
void add_dashboard_command(CLI::App& app, Context& context);
/// `parent`: the program, or the group of clusters.
void add_connect_command(CLI::App& parent, Context& context);
void add_pool_commands(CLI::App& app, Context& context);
void add_token_commands(CLI::App& app, Context& context);
void add_file_commands(CLI::App& app, Context& context);
void add_doctor_command(CLI::App& app, Context& context);
void add_completion_commands(CLI::App& app, Context& context);

}  // namespace helio::cli
