#pragma once
#include "base/error.h"
#include "model/job.h"

#include <string>
#include <vector>

namespace helio::service {

/// Exactly one of argv, command, script, none of them empty, none longer than the system can start. Takes blanks off the ends of a command.
Result<void> resolve_entrypoint(model::Entrypoint& entrypoint);

/// What a job is called when its user gave no name: the program's file, else the first word.
std::string default_name(const model::Entrypoint& entrypoint);

/// What is likely a mistake in it.
std::vector<std::string> entrypoint_warnings(const model::Entrypoint& entrypoint);

}  // namespace helio::service
