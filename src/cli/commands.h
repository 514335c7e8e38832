#pragma once
#include <string>
#include <vector>

namespace helio::cli {

/// The whole program: parses `args` (without the program's name), runs the command, prints errors as one line. Returns the exit code.
int run_program(std::vector<std::string> args);

}  // namespace helio::cli
