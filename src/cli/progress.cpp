#include "cli/progress.h"

#include "cli/outcome.h"
#include "cli/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <utility>

namespace helio::cli {
namespace {

constexpr Duration kMoment = 1s;

}  // namespace

void Progress::say(const std::string& line, Timestamp at) {
  write_(fmt::format("{:>8}  {}", stage_time(at - start_), line));
  last_line_ = std::max(last_line_, at);
}

void Progress::say_marks(const model::Attempt& attempt, std::set<std::string>& shown) {
  const bool ended = is_terminal(attempt.state) || attempt.state == model::AttemptState::ending;
  const auto reached = [&](std::string_view name) {
    return std::ranges::find(attempt.marks, name, &model::Mark::name) != attempt.marks.end();
  };
  std::multimap<Timestamp, std::string> fresh;
  for (const model::Mark& mark : attempt.marks) {
    // The daemon and an agent make these two: the report of what came just before may still be on its way.
    const bool early = !ended && ((mark.name == "agents_up" && !reached("ray_exec") && !reached("gcs_up")) ||
                                  (mark.name == "first_line" && !reached("submitted")));
    if (!early && shown.insert(mark.name).second) fresh.emplace(mark.at, mark.name);
  }
  for (const auto& [at, name] : fresh) {
    if (name != "accepted" || attempt.number == 1) say(mark_label(name), at);
  }
}

void Progress::say_queued(Timestamp now) {
  if (queued_for_.empty() || now - queued_since_ < kMoment) return;
  if (shown_marks_.empty()) {
    shown_marks_.emplace_back().insert("accepted");
    say(mark_label("accepted"), start_);
  }
  shown_reason_ = std::exchange(queued_for_, {});
  say("queued: " + shown_reason_, now);
}

void Progress::update(const model::Job& job, const std::vector<model::Attempt>& attempts, Timestamp now) {
  start_ = job.created;
  shown_marks_.resize(std::max(shown_marks_.size(), attempts.size()));
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const model::Attempt& attempt = attempts[i];
    if (shown_marks_[i].empty() && attempt.number > 1 && !attempt.marks.empty()) {
      say(fmt::format("attempt {}", attempt.number), attempt.created);
    }
    say_marks(attempt, shown_marks_[i]);
    const bool ended = is_terminal(attempt.state) || attempt.state == model::AttemptState::ending;
    waiting_for_ = ended || attempt.state == model::AttemptState::running ? std::string() : attempt.reason;
  }
  const bool queued = job.state == model::JobState::queued;
  const bool restarting = job.state == model::JobState::restarting;
  if (queued || restarting) waiting_for_ = job.reason;
  if (restarting && !job.reason.empty() && job.reason != shown_reason_) {
    shown_reason_ = job.reason;
    say("restarting: " + job.reason, job.state_since);
  }
  // Nearly every job is admitted at once: that it stood in the queue for a moment is no news.
  queued_for_ = queued && job.reason != shown_reason_ ? job.reason : std::string();
  queued_since_ = job.state_since;
  say_queued(now);
}

void Progress::tick(Timestamp now, Duration quiet) {
  say_queued(now);
  if (waiting_for_.empty() || now - last_line_ < quiet) return;
  say("still waiting: " + waiting_for_, now);
}

}  // namespace helio::cli
