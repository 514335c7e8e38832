#include "cli/progress.h"

#include "cli/outcome.h"
#include "cli/table.h"

#include <fmt/core.h>

namespace helio::cli {

void Progress::say(const std::string& line, Timestamp at) {
  write_(fmt::format("{:>8}  {}", stage_time(at - start_), line));
  last_line_ = std::max(last_line_, at);
}

void Progress::update(const model::Job& job, const std::vector<model::Attempt>& attempts) {
  start_ = job.created;
  shown_marks_.resize(std::max(shown_marks_.size(), attempts.size()), 0);
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const model::Attempt& attempt = attempts[i];
    if (shown_marks_[i] == 0 && attempt.number > 1 && !attempt.marks.empty()) {
      say(fmt::format("attempt {}", attempt.number), attempt.created);
    }
    for (std::size_t& next = shown_marks_[i]; next < attempt.marks.size(); ++next) {
      const model::Mark& mark = attempt.marks[next];
      if (mark.name != "accepted" || attempt.number == 1) say(mark_label(mark.name), mark.at);
    }
    const bool ended = is_terminal(attempt.state) || attempt.state == model::AttemptState::ending;
    waiting_for_ = ended || attempt.state == model::AttemptState::running ? std::string() : attempt.reason;
  }
  const bool waits = job.state == model::JobState::queued || job.state == model::JobState::restarting;
  if (waits) waiting_for_ = job.reason;
  if (waits && !job.reason.empty() && job.reason != shown_reason_) {
    shown_reason_ = job.reason;
    say(fmt::format("{}: {}", json::enum_name(job.state), job.reason), job.state_since);
  }
}

void Progress::tick(Timestamp now, Duration quiet) {
  if (waiting_for_.empty() || now - last_line_ < quiet) return;
  say("still waiting: " + waiting_for_, now);
}

}  // namespace helio::cli
