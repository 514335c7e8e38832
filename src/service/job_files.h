#pragma once
#include "base/error.h"
#include "model/home.h"
#include "model/job.h"

#include <string>

namespace helio::service {

/// For a script: makes the job's folder (0700) with its body as a file. On error nothing stays. Outputs and checkpoints are made by the
/// first node that starts.
Result<void> make_job_files(const model::Home& home, const JobId& job, const model::Entrypoint& entrypoint);
Result<void> remove_job_files(const model::Home& home, const JobId& job);

}  // namespace helio::service
