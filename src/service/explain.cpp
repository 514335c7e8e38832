// Why a job is where it is: its events, and the scheduler's own decision on the state of now.

#include "service/jobs.h"
#include "service/live.h"
#include "service/scope.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string_view>

namespace helio::service {
namespace {

constexpr std::size_t kStory = 100;

/// Steps of nodes, many for each line that matters; `helio events` has them.
bool is_detail(std::string_view type) {
  static constexpr std::array<std::string_view, 7> kDetails{"node.status",  "node.connection", "node.fact", "node.requested",
                                                            "attempt.mark", "attempt.driver",  "job.reason"};
  return std::ranges::find(kDetails, type) != kDetails.end();
}

/// The last lines of the job's story, newest last.
Result<std::vector<std::string>> story_of(store::ReadTx& tx, const JobId& job) {
  std::deque<std::string> lines;
  store::EventQuery query;
  query.job = job.value;
  query.limit = 20'000;  // far more than a job with all its retries makes
  HELIO_TRY(events, tx.events(query));
  for (const store::Event& event : events) {
    if (event.message.empty() || is_detail(event.type)) continue;
    lines.push_back(fmt::format("{} {} {}: {}", format_time(event.at), event.type, event.id, event.message));
    if (lines.size() > kStory) lines.pop_front();
  }
  return std::vector<std::string>(std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
}

/// Jobs that the caller does not know of are counted, not named.
Result<void> hide_strangers(store::ReadTx& tx, const model::Scope& scope, sched::Refusal& mine) {
  std::vector<JobId> known;
  for (const JobId& job : mine.ahead) {
    HELIO_TRY(may, knows(tx, scope, job));
    if (may) known.push_back(job);
  }
  if (known.size() == mine.ahead.size()) return {};
  mine.ahead = std::move(known);
  mine.message = fmt::format("waits behind {} other{}", mine.position - 1, mine.position == 2 ? "" : "s");
  return {};
}

void explain_waiting(Explanation& out, const sched::Plan& plan) {
  const auto mine = std::ranges::find(plan.wait, out.job, &sched::Refusal::job);
  if (mine == plan.wait.end()) {
    const bool admitted = std::ranges::find(plan.admit, out.job, &sched::Admission::job) != plan.admit.end();
    if (admitted) out.lines.emplace_back("now: it fits and starts at the scheduler's next decision");
    return;
  }
  if (mine->position > 0) out.position = mine->position;
  out.ahead = mine->ahead;
  out.constraint = mine->constraint;
  out.would_help = mine->message;
  if (mine->constraint == "order" && !mine->ahead.empty()) {
    const auto first = std::ranges::find(plan.wait, mine->ahead.front(), &sched::Refusal::job);
    const bool is_next = first != plan.wait.end() && first->position == 1;
    if (is_next) out.would_help += fmt::format("; {}, which is next, {}", first->job.value, first->message);
  }
  const std::string place = out.position ? fmt::format("place {} of the queue; ", *out.position) : "";
  out.lines.push_back(fmt::format("now: {}{}", place, out.would_help));
}

}  // namespace

Result<Explanation> Jobs::explain(const Caller& caller, const JobId& id) {
  Explanation out;
  out.job = id;
  sched::State state;
  bool waits = false;
  HELIO_TRY(catalog, catalog_.get());
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(job, tx.find<model::Job>(id.value));
    if (!job) return fail(no_job(id));
    out.state = job->state;
    out.reason = job->reason;
    if (job->verdict) {
      out.lines.push_back(fmt::format("verdict {}: {}{}", job->verdict->cause, job->verdict->message,
                                      job->verdict->decision.empty() ? "" : " (" + job->verdict->decision + ")"));
      for (const model::Evidence& evidence : job->verdict->evidence) {
        out.lines.push_back(fmt::format("seen in {}: {}", evidence.source, evidence.text));
      }
    }
    HELIO_TRY(lines, story_of(tx, id));
    std::ranges::move(lines, std::back_inserter(out.lines));
    const bool grows = job->state == model::JobState::running && job->growing_since;
    waits = (grows || job->state == model::JobState::queued || job->state == model::JobState::restarting) &&
            job->stop == model::StopReason::none;
    if (waits && job->guest_of) {
      out.constraint = "cluster";
      HELIO_TRY(cluster, tx.find<model::Job>(job->guest_of->value));
      if (cluster) {
        out.would_help = fmt::format("it starts when the cluster '{}' is ready, which is {}: {}", cluster->spec.name,
                                     json::enum_name(cluster->state), cluster->reason);
        out.lines.push_back("now: " + out.would_help);
      }
      waits = false;
    }
    if (!waits) return {};
    const auto members = model::members_of(job->spec, catalog->flavors);
    if (!members) {
      out.constraint = "flavor";
      out.would_help = members.error().message() + ": add it again, or stop the job";
      waits = false;
      return {};
    }
    HELIO_TRY(live, load_state(tx, catalog->flavors));
    state = std::move(live);
    return {};
  }));
  if (!waits) return out;
  sched::Plan plan = sched::plan_admissions(state, clock_.now());
  const auto mine = std::ranges::find(plan.wait, id, &sched::Refusal::job);
  if (!caller.scope.is_all() && mine != plan.wait.end()) {
    HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) { return hide_strangers(tx, caller.scope, *mine); }));
  }
  explain_waiting(out, plan);
  return out;
}

}  // namespace helio::service
