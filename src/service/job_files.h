#pragma once
#include "base/error.h"
#include "model/home.h"
#include "model/job.h"

#include <string>

namespace helio::service {

/// Makes a job's folder (0700) with outputs, checkpoints and, for a script, its body as a file. On error nothing stays.
Result<void> make_job_files(const model::Home& home, const JobId& job, const model::Entrypoint& entrypoint);
Result<void> remove_job_files(const model::Home& home, const JobId& job);

}  // namespace helio::service
