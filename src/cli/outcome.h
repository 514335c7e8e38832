#pragma once
// How a job's end is told: exit code, stages with their times, and the closing lines.

#include "model/cluster.h"
#include "model/job.h"

#include <string>
#include <string_view>
#include <vector>

namespace helio::cli {

/// Exit code for an ended job: the entrypoint's own where it ended by itself, else one of kExit* (context.h).
int exit_code_of(const model::Job& job);

/// "Ray's GCS up" for the mark gcs_up; unknown marks by their own name.
std::string mark_label(std::string_view mark);

/// The end of a text, where programs say what went wrong, as one line of about so many bytes.
std::string last_part(std::string_view text, std::size_t width);

/// Nodes, as "1+2": the head and its workers; "in NAME" of a long-lived cluster.
std::string shape_of(const model::JobSpec& spec);

struct Stage {
  std::string name;
  Duration took{0};
};
/// Where the time of an attempt went: one stage between each two marks that were reached, in order of time.
std::vector<Stage> stages_of(const model::Attempt& attempt);
/// "queued 0.01s · agents 0.30s · …"
std::string stage_line(const std::vector<Stage>& stages);

/// What is said at the end, for people: outcome, cause with evidence, stages, how to go on.
std::string closing_text(const model::Job& job, const std::vector<model::Attempt>& attempts);

}  // namespace helio::cli
