#include "control/controllers.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::control {
namespace {

namespace cause = model::cause;
using model::AttemptState;
using model::JobState;
using model::StopReason;

/// A verdict about a job that has no attempt to speak of.
void end_without_attempt(Draft& draft, JobState to, std::string_view id, std::string message) {
  Tracked<model::Job>& job = *draft.job;
  model::Verdict verdict;
  verdict.cause = std::string(id);
  verdict.charged_to = model::cause_class(id);
  verdict.stage = json::enum_name(job->state);
  verdict.message = message;
  verdict.decision = "final: it had no attempt running";
  job->verdict = std::move(verdict);
  job->finished = draft.now();
  draft.go(to, std::move(message));
}

bool total_passed(Draft& draft) {
  const model::Job& job = draft.job->value;
  const Duration total = job.spec.limits.total.d;
  return total > Duration(0) && job.first_admitted && draft.passed("total", *job.first_admitted, total);
}

std::string total_text(const model::Job& job) {
  return fmt::format("the job took longer than limits.total ({})", format_duration(job.spec.limits.total.d));
}

constexpr Duration kIdleNotice = 5min;  ///< its users are told again so long before an idle cluster is shut down, or half its limit

/// What is still to come of the size that was asked for.
std::string resizing(const Draft& draft) {
  std::vector<std::string> leaving;
  for (const auto& node : draft.nodes) {
    if (node->leaving && node->state != model::NodeState::gone) leaving.push_back(node_name(node->role, node->index));
  }
  std::string out;
  if (draft.job->value.growing_since && draft.cluster) {
    const std::string& reason = draft.cluster->value.reason;
    out += "; " + (reason.starts_with(kWaitsForRoom) ? reason : std::string(kWaitsForRoom));
  }
  if (!leaving.empty())
    out += fmt::format("; {} leave{} when the work there has ended", fmt::join(leaving, ", "), leaving.size() == 1 ? "s" : "");
  return out;
}

/// What a job that runs is doing. Who has a long-lived cluster is told when it will be shut down, and again shortly before.
std::string running_reason(Draft& draft) {
  const model::Job& job = draft.job->value;
  if (job.spec.type == model::JobType::job) return "the entrypoint is running";
  if (!job.idle_since || !job.spec.limits.idle) return "ready" + resizing(draft);
  const Duration limit = job.spec.limits.idle->d;
  const Duration notice = std::min(kIdleNotice, limit / 2);
  const std::string name = fmt::format("idle-notice/{}/{}", draft.attempt->value.id.value, job.idle_since->us);
  const bool soon = draft.passed(name, *job.idle_since, limit - notice);
  return fmt::format("{}idle since {}; it is shut down at {} unless something runs in it (limits.idle {})",
                     soon ? "about to be shut down: " : "", format_time(*job.idle_since), format_time(*job.idle_since + limit),
                     format_duration(limit)) +
         resizing(draft);
}

/// A job in a long-lived cluster has no place of its own to wait for.
bool cluster_is_over(const Draft& draft) { return draft.job->value.guest_of && (draft.host == nullptr || !draft.host->job); }

std::string waiting_for_cluster(const Draft& draft) {
  const model::Job& cluster = *draft.host->job;
  return fmt::format("waiting for the cluster '{}', which is {}: {}", cluster.spec.name, json::enum_name(cluster.state), cluster.reason);
}

void with_attempt(Draft& draft) {
  Tracked<model::Job>& job = *draft.job;
  const model::Attempt& attempt = draft.attempt->value;
  if (job->stop == StopReason::none && total_passed(draft)) {
    job->stop = StopReason::deadline;
    job->stop_asked = draft.now();
    draft.touch(job, "job.deadline", total_text(job.value));
    draft.wake_in(Duration(0));
  }
  if (job->stop != StopReason::none) draft.go(JobState::stopping, job->stop == StopReason::deadline ? total_text(job.value) : "stopping");
  if (attempt.state != AttemptState::running) job->idle_since.reset();
  if (job->state == JobState::starting && attempt.state == AttemptState::running) draft.go(JobState::running, running_reason(draft));
  // While it starts the reason is the stage; the attempt has the details. Anything to wait for is said here too.
  const bool away = std::ranges::any_of(draft.nodes, [](const auto& node) { return node->state == model::NodeState::unreachable; });
  if (attempt.state == AttemptState::ending || away) {
    draft.explain(job, attempt.reason);
  } else if (job->state == JobState::starting) {
    draft.explain(job, attempt.guest_of ? attempt.reason : fmt::format("attempt {} is starting its cluster", attempt.number));
  } else if (job->state == JobState::running) {
    draft.explain(job, running_reason(draft));
  }
}

void without_attempt(Draft& draft) {
  Tracked<model::Job>& job = *draft.job;
  if (job->stop == StopReason::deadline) return end_without_attempt(draft, JobState::failed, cause::kDeadlineTotal, total_text(job.value));
  if (job->stop != StopReason::none) return end_without_attempt(draft, JobState::stopped, cause::kStoppedUser, "stopped before it ran");
  if (total_passed(draft)) return end_without_attempt(draft, JobState::failed, cause::kDeadlineTotal, total_text(job.value));
  if (cluster_is_over(draft)) {
    const std::string message = fmt::format("the cluster '{}' has ended", job->spec.cluster.value_or(""));
    return end_without_attempt(draft, JobState::failed, cause::kClusterEnded, message);
  }
  if (job->state == JobState::queued) {
    const Duration pending = job->spec.limits.pending.d;
    if (pending > Duration(0) && draft.passed(fmt::format("pending/{}", job->attempts), job->state_since, pending)) {
      end_without_attempt(draft, JobState::failed, cause::kDeadlinePending,
                          fmt::format("waited in the queue longer than limits.pending ({})", format_duration(pending)));
      return;
    }
    if (job->guest_of && draft.host->job->state != JobState::running) draft.explain(job, waiting_for_cluster(draft));
    return;
  }
  if (job->state == JobState::restarting) {
    const Timestamp until = job->not_before.value_or(job->state_since);
    if (!draft.passed(fmt::format("backoff/{}", job->attempts), job->state_since, until - job->state_since)) return;
    job->not_before.reset();
    draft.go(JobState::queued, fmt::format("waiting for its attempt {}", job->attempts + 1));
  }
}

}  // namespace

void step_job(Draft& draft) {
  if (!draft.job || model::is_terminal(draft.job->value.state)) return;
  if (!draft.attempt) return without_attempt(draft);
  if (!model::is_terminal(draft.attempt->value.state)) with_attempt(draft);
}

}  // namespace helio::control
