#pragma once
#include "base/error.h"
#include "model/home.h"
#include "model/settings.h"

#include <optional>
#include <string>

namespace helio::daemon {

struct Options {
  model::Home home;
  std::optional<std::string> listen;  ///< ADDRESS:PORT; wins over config.yaml
  std::string agent;                  ///< helio-agent program; empty: beside this one, then in PATH
  bool foreground = false;            ///< a terminal that goes away stops the daemon
  bool print_openapi = false;
};

/// From argv and the environment. A value: the exit code of a program that has nothing more to do (--help, --version, wrong usage).
std::optional<int> parse_options(int argc, char** argv, Options& options);

/// "127.0.0.1:8321" or "[::1]:8321" into `server`. Error: invalid_argument.
Result<void> apply_listen(const std::string& listen, model::ServerSettings& server);
/// Only this machine can reach it.
bool is_loopback(const std::string& address);
/// Content of <home>/config.yaml over the defaults; no file: the defaults. Errors: invalid_argument with the field's path and the file's
/// name, or with line and column; those of reading it.
Result<model::Settings> load_settings(const model::Home& home);
/// Values that no default could be better than. Error: invalid_argument with the path of the field.
Result<void> check_settings(const model::Settings& settings);
/// Path of helio-agent. Error: not_found.
Result<std::string> find_agent(const std::string& asked);

}  // namespace helio::daemon
