#pragma once
// Which Ray and Python a command would be a Ray Client with, and whether a cluster goes along with them.

#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace helio::cli {

struct RayAndPython {
  std::string ray;     ///< "2.60.0"; empty: not known, or of a program: it has none
  std::string python;  ///< "3.11.7"; empty: not known
};

/// The Python that a command runs: the program itself when it is called so, or the one that a script names in its first line. Looked up as
/// the shell would; nothing when it cannot be told.
std::optional<std::string> interpreter_of(const std::string& program, const std::string& path);

/// Asks an interpreter for its version and its Ray's, without importing Ray. `env`: "K=V". Errors: precondition_failed when it cannot be
/// run or does not answer as a Python does.
Result<RayAndPython> ask_python(const std::string& interpreter, const std::vector<std::string>& env);

/// Ray Client wants the same Ray and the same minor version of Python on both sides: what differs and what to do, nothing when it fits as
/// far as is known. `own`: an interpreter of this machine that would do, or empty.
std::optional<std::string> why_no_client(const RayAndPython& cluster, const std::string& interpreter, const RayAndPython& program,
                                         const std::string& own);

}  // namespace helio::cli
