#pragma once
// What there is for a caller. What it does not know of is told to it exactly as what does not exist.

#include "base/error.h"
#include "model/access.h"
#include "store/store.h"

#include <string_view>

namespace helio::service {

/// What is said of a job that is not there, or not for who asks.
Error no_job(const JobId& id);

/// The job is there, in a workspace of `scope`; of the scope of all workspaces nothing is asked.
Result<bool> knows(store::ReadTx& tx, const model::Scope& scope, const JobId& job);

/// Error: not_found at $.workspace, the same for a workspace that is not in `scope` and for one that does not exist.
Result<void> check_workspace(const model::Scope& scope, std::string_view workspace);

}  // namespace helio::service
