#include "cli/outcome.h"

#include "cli/context.h"
#include "cli/table.h"

#include <algorithm>
#include <array>
#include <map>

namespace helio::cli {
namespace {

struct MarkText {
  std::string_view mark;
  std::string_view label;  ///< when it is reached
  std::string_view stage;  ///< the time that led to it
};
// In order of a good life; docs/en/timeline.md explains each.
constexpr std::array kMarks{
    MarkText{"accepted", "accepted", ""},
    MarkText{"admitted", "admitted", "queued"},
    MarkText{"agents_up", "agents up", "agents"},
    MarkText{"ray_exec", "Ray started on the head", "exec"},
    MarkText{"gcs_up", "Ray's GCS up", "GCS"},
    MarkText{"api_up", "Ray's job API up", "job API"},
    MarkText{"nodes_alive", "all nodes alive", "nodes"},
    MarkText{"submitted", "entrypoint submitted", "submit"},
    MarkText{"first_line", "first line of output", "driver start"},
    MarkText{"driver_end", "entrypoint ended", "running"},
    MarkText{"logs_complete", "logs complete", "logs"},
    MarkText{"gone", "nodes gone", "teardown"},
};

const MarkText* mark_text(std::string_view mark) {
  const auto* found = std::ranges::find(kMarks, mark, &MarkText::mark);
  return found == kMarks.end() ? nullptr : found;
}

std::string spaced(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '_', ' ');
  return out;
}

int entrypoint_code(const model::Job& job) {
  std::optional<std::int32_t> code = job.exit_code;
  if (!code && job.verdict) code = job.verdict->exit_code;
  const int shown = code.value_or(1) & 0xff;
  return shown == 0 ? 1 : shown;
}

}  // namespace

std::string last_part(std::string_view text, std::size_t width) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.size() <= width) return one_line(text, width);
  text.remove_prefix(text.size() - width);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0U) == 0x80U) text.remove_prefix(1);
  return "…" + one_line(text, width);
}

int exit_code_of(const model::Job& job) {
  const std::string cause = job.verdict ? job.verdict->cause : std::string();
  if (job.state == model::JobState::succeeded) return 0;
  if (cause.starts_with("deadline.")) return kExitDeadline;
  if (job.state == model::JobState::stopped) return job.stop == model::StopReason::deadline ? kExitDeadline : kExitStopped;
  if (cause == model::cause::kEntrypointExit || cause == model::cause::kEntrypointSignal) return entrypoint_code(job);
  if (job.verdict && job.verdict->charged_to == model::CauseClass::user) return kExitOwnFault;
  return kExitPlatform;
}

std::string shape_of(const model::JobSpec& spec) {
  if (spec.cluster) return "in " + *spec.cluster;
  std::int64_t workers = 0;
  for (const model::WorkerGroup& group : spec.workers) workers += group.count;
  return fmt::format("1+{}", workers);
}

std::string mark_label(std::string_view mark) {
  const MarkText* text = mark_text(mark);
  return text == nullptr ? spaced(mark) : std::string(text->label);
}

std::vector<Stage> stages_of(const model::Attempt& attempt) {
  std::multimap<Timestamp, std::string_view> marks;  // those of one instant in the order in which they were made
  for (const model::Mark& mark : attempt.marks) {
    // A later attempt did not wait since the submit.
    if (mark.name == "accepted" && attempt.number > 1) continue;
    if (mark_text(mark.name) != nullptr) marks.emplace(mark.at, mark.name);
  }
  std::vector<Stage> out;
  std::optional<Timestamp> before;
  for (const auto& [at, mark] : marks) {
    const std::string_view name = mark_text(mark)->stage;
    if (before && !name.empty()) out.push_back({std::string(name), at - *before});
    before = at;
  }
  return out;
}

std::string stage_line(const std::vector<Stage>& stages) {
  std::string out;
  for (const Stage& stage : stages) out += (out.empty() ? "" : " · ") + stage.name + " " + stage_time(stage.took);
  return out;
}

std::string closing_text(const model::Job& job, const std::vector<model::Attempt>& attempts) {
  const Duration took = job.finished ? *job.finished - job.created : Duration(0);
  std::string out = fmt::format("{} {} {} after {}", job.spec.name, job.id.value, json::enum_name(job.state), stage_time(took));
  if (job.attempts > 1) out += fmt::format(", {} attempts", job.attempts);
  out += fmt::format(" (exit code {})\n", exit_code_of(job));
  if (job.verdict && job.state != model::JobState::succeeded) {
    out += fmt::format("  cause    {}: {}\n", job.verdict->cause, job.verdict->message);
    const std::size_t shown = std::min<std::size_t>(job.verdict->evidence.size(), 3);
    for (std::size_t i = 0; i < shown; ++i) {
      const model::Evidence& evidence = job.verdict->evidence[i];
      out += fmt::format("  seen in  {}: {}\n", evidence.source, last_part(evidence.text, 160));
    }
    if (!job.verdict->decision.empty()) out += fmt::format("  policy   {}\n", job.verdict->decision);
  }
  if (!attempts.empty()) {
    if (const std::string stages = stage_line(stages_of(attempts.back())); !stages.empty()) out += fmt::format("  time     {}\n", stages);
  }
  out += fmt::format("  go on    helio logs {0} | helio show {0} | helio explain {0} | helio rerun {0}\n", job.id.value);
  return out;
}

}  // namespace helio::cli
