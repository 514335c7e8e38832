#pragma once
// What to type instead, for the usual slips. Pure but for looking at files.

#include <optional>
#include <string>
#include <vector>

namespace helio::cli {

/// Commands that end with "-- COMMAND...".
bool takes_command(const std::string& name);

/// `name`: the subcommand; `args`: its words as typed, what stands after "--" not among them; `extras`: those of them that it has no use
/// for, in their order.
std::string unexpected_words(const std::string& name, const std::vector<std::string>& args, const std::vector<std::string>& extras);

/// Why the word given to `helio submit` in place of a job file cannot be one; nothing when it may be.
std::optional<std::string> no_job_file(const std::string& word);

/// The first word of a command that is a file of the current folder, which does not travel by itself.
std::optional<std::string> file_left_behind(const std::vector<std::string>& argv);

}  // namespace helio::cli
