#pragma once
// The options that jobs and long-lived clusters have in common.

#include "cli/spec_flags.h"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace helio::cli {

/// Nodes: how many, which, with what in their environment.
void add_node_options(CLI::App& command, SpecFlags& flags);
/// Priority, limits, retries, what is kept.
void add_policy_options(CLI::App& command, SpecFlags& flags);

/// A variable of this process.
std::optional<std::string> from_environment(const std::string& name);

}  // namespace helio::cli
