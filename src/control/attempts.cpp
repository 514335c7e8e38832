#include "control/controllers.h"

#include "base/check.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace helio::control {
namespace {

namespace cause = model::cause;
using model::AttemptState;
using model::DriverPhase;
using model::NodeState;
using model::Phase;

constexpr Duration kStopMargin = 20s;     ///< on top of the grace, for an agent that does not answer
constexpr Duration kSubmittedMax = 960s;  ///< Ray gives up on a job that does not start after 900 s
constexpr Duration kKeptLogs = 10s;       ///< a node that is kept goes on writing; its driver's log is long complete
constexpr Duration kHeardFor = 15s;       ///< an agent that is back has told its state again by then
constexpr std::string_view kAskedMark = "stop_asked";
/// Marks of the head that are the attempt's too.
constexpr std::array<std::string_view, 7> kHeadMarks{"ray_exec",  "gcs_up",     "api_up",    "nodes_alive",
                                                     "submitted", "first_line", "driver_end"};

Tracked<model::Node>* head_of(Draft& draft) {
  return draft.nodes.empty() || draft.nodes.front()->role != model::Role::head ? nullptr : &draft.nodes.front();
}

std::string name_of(const model::Node& node) { return node_name(node.role, node.index); }

const model::Mark* find_mark(const model::Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.status.marks, name, &model::Mark::name);
  return found == node.status.marks.end() ? nullptr : &*found;
}

bool is_cluster(const Draft& draft) { return draft.job->value.spec.type == model::JobType::cluster; }

std::string_view running_text(const Draft& draft) { return is_cluster(draft) ? "the cluster is ready" : "the entrypoint is running"; }

/// The driver may have been handed to the cluster.
bool driver_active(const model::DriverStatus& driver) { return driver.phase != DriverPhase::none && driver.phase != DriverPhase::ended; }

void collect(Draft& draft) {
  Tracked<model::Attempt>& attempt = *draft.attempt;
  const Tracked<model::Node>* head = head_of(draft);
  if (head == nullptr) return;
  std::optional<Timestamp> agents_up{Timestamp{0}};
  for (const auto& node : draft.nodes) {
    const model::Mark* up = find_mark(node.value, "agent_up");
    if (up == nullptr)
      agents_up.reset();
    else if (agents_up)
      agents_up = std::max(*agents_up, up->at);
  }
  if (agents_up) draft.mark("agents_up", *agents_up);
  for (const std::string_view name : kHeadMarks) {
    if (const model::Mark* mark = find_mark(head->value, name)) draft.mark(name, mark->at);
  }
  const model::DriverStatus& driver = (*head)->status.driver;
  if (json::encode(driver) != json::encode(attempt->driver)) {
    draft.touch(attempt, "attempt.driver", std::string("driver ") + std::string(json::enum_name(driver.phase)));
    attempt->driver = driver;
  }
}

model::Verdict own_verdict(const Draft& draft, std::string_view id, std::string message) {
  AttemptFacts facts;
  facts.stage = json::enum_name(draft.attempt->value.state);
  facts.asked = Asked{std::string(id), std::move(message), draft.now()};
  return *classify(facts);
}

/// Notes that we end the attempt ourselves, and why; the first reason stays.
void decide_to_end(Draft& draft, std::string_view id, std::string message, Timestamp at) {
  Tracked<model::Attempt>& attempt = *draft.attempt;
  if (attempt->stop_asked) return;
  attempt->stop_asked = true;
  attempt->verdict = own_verdict(draft, id, std::move(message));
  draft.mark(kAskedMark, at);
  draft.touch(attempt, "attempt.stop_asked", attempt->verdict->message);
}

bool kept(const Draft& draft, const model::Node& node, const Decision& decision) {
  const model::Retention& retention = draft.job->value.spec.retention;
  if (decision.retry || retention.nodes == model::Retain::none || retention.time.d <= Duration(0)) return false;
  if (draft.job->value.stop != model::StopReason::none || proven_dead(node) || node.status.fault) return false;
  if (node.desired >= Phase::drained) return false;
  return retention.nodes == model::Retain::all || node.role == model::Role::head;
}

/// Takes the nodes down that shall not be kept, and says what the verdict means.
Decision settle(Draft& draft, model::Verdict verdict) {
  const Decision decision = decide(draft.job->value, verdict);
  verdict.decision = decision.text;
  Tracked<model::Attempt>& attempt = *draft.attempt;
  if (!attempt->verdict || json::encode(*attempt->verdict) != json::encode(verdict)) {
    draft.touch(attempt, "attempt.verdict", verdict.message);
    attempt->verdict = std::move(verdict);
  }
  if (draft.has_guests) return decision;  // they leave first: their logs are on its disks
  for (Tracked<model::Node>& node : draft.nodes) {
    if (!kept(draft, node.value, decision)) ask(draft, node, Phase::drained);
  }
  return decision;
}

AttemptState end_state(const model::Verdict& verdict) {
  if (verdict.cause == cause::kSucceeded) return AttemptState::succeeded;
  if (verdict.cause == cause::kStoppedUser || verdict.cause == cause::kStoppedIdle) return AttemptState::stopped;
  if (verdict.cause == cause::kAgentDied || verdict.cause == cause::kHostReboot || verdict.cause == cause::kClusterLost) {
    return AttemptState::lost;
  }
  return AttemptState::failed;
}

void conclude_job(Draft& draft, const model::Verdict& verdict, const Decision& decision) {
  Tracked<model::Job>& job = *draft.job;
  job->verdict = verdict;
  if (decision.retry) {
    ++job->ledger[std::string(json::enum_name(verdict.charged_to))];
    job->not_before = draft.now() + decision.backoff;
    draft.go(model::JobState::restarting, fmt::format("{}; {}", verdict.message, decision.text));
    return;
  }
  const AttemptState ended = draft.attempt->value.state;
  const model::DriverStatus& driver = draft.attempt->value.driver;
  if (driver.phase == DriverPhase::ended) job->exit_code = driver.exit_code;
  job->finished = draft.now();
  const model::JobState to = ended == AttemptState::succeeded ? model::JobState::succeeded
                             : ended == AttemptState::stopped ? model::JobState::stopped
                                                              : model::JobState::failed;
  draft.go(to, verdict.message);
}

void conclude(Draft& draft, const Decision& decision) {
  Tracked<model::Attempt>& attempt = *draft.attempt;
  const bool all_gone = std::ranges::all_of(draft.nodes, [](const auto& node) { return node->state == NodeState::gone; });
  draft.mark("logs_complete", draft.now());
  if (all_gone) draft.mark("gone", draft.now());
  const model::Verdict verdict = *attempt->verdict;
  attempt->finished = draft.now();
  draft.go(end_state(verdict), verdict.message);
  conclude_job(draft, verdict, decision);
}

/// What the end waits for; empty when nothing is in the way.
std::string waiting_for(const Draft& draft, const Decision& decision) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> waiting;
  for (const auto& node : draft.nodes) {
    if (node->state == NodeState::gone || kept(draft, node.value, decision)) continue;
    waiting.push_back(fmt::format("{} ({})", name_of(node.value), node->reason.empty() ? "leaving" : node->reason));
  }
  if (waiting.size() <= kShown) return fmt::format("{}", fmt::join(waiting, ", "));
  const auto shown = waiting.begin() + static_cast<std::ptrdiff_t>(kShown);
  return fmt::format("{} and {} more", fmt::join(waiting.begin(), shown, ", "), waiting.size() - kShown);
}

/// A node that is kept has not yet handed over what its driver wrote.
bool owes_logs(const Draft& draft, const model::Node& node) {
  if (node.state == NodeState::gone || node.status.logs_complete) return false;
  const model::DriverStatus& driver = draft.attempt->value.driver;
  if (driver.phase == DriverPhase::none) return false;
  const bool head = node.role == model::Role::head;
  const bool holds = driver.log_node.empty() ? head : driver.log_node == node.id.value;
  return holds && !(head && node.status.logs_caught_up);
}

void take_down(Draft& draft, model::Verdict verdict) {
  Tracked<model::Attempt>& attempt = *draft.attempt;
  const Decision decision = settle(draft, std::move(verdict));
  const std::string waiting = waiting_for(draft, decision);
  if (!waiting.empty()) return draft.explain(attempt, fmt::format("{}; taking down {}", attempt->verdict->message, waiting));
  if (std::ranges::any_of(draft.nodes, [&](const auto& node) { return owes_logs(draft, node.value); }) &&
      !draft.passed("kept-logs/" + attempt->id.value, attempt->state_since, kKeptLogs))
    return;
  conclude(draft, decision);
}

void step_ending(Draft& draft) {
  const model::Attempt& attempt = draft.attempt->value;
  HELIO_CHECK(attempt.verdict.has_value(), "an attempt that ends has a verdict");
  AttemptFacts facts = facts_of(draft);
  facts.teardown_since = attempt.state_since;
  facts.stage = attempt.verdict->stage;
  take_down(draft, classify(facts).value_or(*attempt.verdict));
}

void begin_end(Draft& draft, model::Verdict verdict) {
  draft.go(AttemptState::ending, verdict.message);
  take_down(draft, std::move(verdict));
}

/// Which node is not ready and what it was doing.
std::string unready(const Draft& draft) {
  std::vector<std::string> parts;
  for (const auto& node : draft.nodes) {
    const bool up = node->status.reached >= Phase::joined;
    if (up && node->role == model::Role::worker) continue;
    if (up && node->status.driver.phase == DriverPhase::none && !node->status.step.empty()) {
      parts.push_back(fmt::format("{} was {}", name_of(node.value), node->status.step));
    } else if (!up) {
      parts.push_back(fmt::format("{} was {}", name_of(node.value),
                                  !node->status.step.empty()                          ? node->status.step
                                  : node->status.sequence > 0                         ? "starting"
                                  : node->fact.state == model::ProviderState::running ? "starting its agent"
                                                                                      : "being made"));
    }
    if (parts.size() == 3) break;
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// A long-lived cluster that nobody uses ends by itself. While its agent is away nobody knows, so it stays; when it is back, what it said
/// before it was away proves nothing.
void check_idle(Draft& draft, const model::Node& head) {
  Tracked<model::Job>& job = *draft.job;
  const Duration limit = job->spec.limits.idle.value_or(Span{0s}).d;
  if (!is_cluster(draft) || limit <= Duration(0)) return;
  const std::string heard = "idle-heard/" + draft.attempt->value.id.value;
  if (!head.connected) return draft.forget_deadline(heard);
  // A job that is on its way is in no table of Ray yet; once it has ended, what the head said before is heard anew.
  if (draft.expects_guests) draft.forget_deadline(heard);
  const std::optional<Timestamp> since = draft.expects_guests ? std::nullopt : head.status.idle_since;
  const auto deadline = [&](Timestamp from) { return fmt::format("idle/{}/{}", draft.attempt->value.id.value, from.us); };
  if (job->idle_since != since) {
    if (job->idle_since) draft.forget_deadline(deadline(*job->idle_since));
    job->idle_since = since;
    const std::string message =
        since ? fmt::format("nothing runs in it; it is shut down at {} unless something does", format_time(*since + limit))
              : std::string("something runs in it");
    draft.touch(job, since ? "cluster.idle" : "cluster.busy", message);
  }
  const bool fresh = draft.passed(heard, draft.now(), kHeardFor);
  if (!since || !draft.passed(deadline(*since), *since, limit) || !fresh) return;
  decide_to_end(draft, cause::kStoppedIdle, fmt::format("nothing ran in the cluster for {} (limits.idle)", format_duration(limit)),
                draft.now());
}

void check_deadlines(Draft& draft, const Tracked<model::Node>& head) {
  Tracked<model::Attempt>& attempt = *draft.attempt;
  const model::Limits& limits = draft.job->value.spec.limits;
  const DriverPhase phase = head->status.driver.phase;
  const std::string suffix = "/" + attempt->id.value;
  if (attempt->stop_asked) return;
  if (attempt->state == AttemptState::running) {
    if (limits.run.d > Duration(0) && draft.passed("run" + suffix, attempt->state_since, limits.run.d)) {
      decide_to_end(draft, cause::kDeadlineRun,
                    fmt::format("the {} ran longer than limits.run ({})", is_cluster(draft) ? "cluster" : "entrypoint",
                                format_duration(limits.run.d)),
                    draft.now());
    }
    return check_idle(draft, head.value);
  }
  if (phase == DriverPhase::pending) {
    if (draft.passed("submitted" + suffix, draft.marked("submitted").value_or(draft.now()), kSubmittedMax)) {
      decide_to_end(draft, cause::kEntrypointNotStarted, "the cluster did not start the entrypoint; see the head's Ray logs", draft.now());
    }
    return;
  }
  if (limits.readiness.d <= Duration(0)) return;
  if (!draft.passed("readiness" + suffix, attempt->created, limits.readiness.d)) return;
  decide_to_end(draft, cause::kDeadlineReadiness,
                fmt::format("not ready after {}: {}; raise limits.readiness, or see the node's Ray logs",
                            format_duration(limits.readiness.d), unready(draft)),
                draft.now());
}

void check_stop(Draft& draft) {
  const model::Job& job = draft.job->value;
  if (job.stop == model::StopReason::none) return;
  const Timestamp at = job.stop_asked.value_or(draft.now());
  if (job.stop == model::StopReason::deadline) {
    decide_to_end(draft, cause::kDeadlineTotal,
                  fmt::format("the job took longer than limits.total ({})", format_duration(job.spec.limits.total.d)), at);
  } else {
    decide_to_end(draft, cause::kStoppedUser,
                  job.stop == model::StopReason::removed ? "stopped because it was removed" : "stopped by request", at);
  }
}

void advance(Draft& draft, const Tracked<model::Node>& head) {
  const AttemptState state = draft.attempt->value.state;
  const DriverPhase phase = head->status.driver.phase;
  const bool runs = is_cluster(draft) ? head->status.reached >= Phase::checked
                                      : phase == DriverPhase::running || phase == DriverPhase::stopping || draft.marked("first_line");
  if (runs && state < AttemptState::running) {
    draft.go(AttemptState::running, std::string(running_text(draft)));
  } else if (state == AttemptState::admitted) {
    const bool made = std::ranges::any_of(
        draft.nodes, [](const auto& node) { return node->fact.state == model::ProviderState::running || node->status.sequence > 0; });
    if (made) draft.go(AttemptState::starting, "its nodes are starting");
  }
  const auto away = std::ranges::find_if(draft.nodes, [](const auto& node) { return node->state == NodeState::unreachable; });
  if (away != draft.nodes.end()) {
    draft.explain(*draft.attempt, fmt::format("{}: {}", name_of(away->value), (*away)->reason));
  } else if (draft.attempt->value.state == AttemptState::running) {
    draft.explain(*draft.attempt, draft.attempt->value.stop_asked ? "stopping the entrypoint" : std::string(running_text(draft)));
  } else if (!head->status.step.empty()) {
    draft.explain(*draft.attempt, head->status.step);
  }
}

/// What became of the long-lived cluster that the attempt was submitted to; empty while it is the same.
std::optional<Asked> cluster_end(const Draft& draft) {
  const model::Attempt& attempt = draft.attempt->value;
  if (!attempt.guest_of) return std::nullopt;
  const model::Attempt* theirs = draft.host != nullptr && draft.host->attempt ? &*draft.host->attempt : nullptr;
  const bool same = theirs != nullptr && theirs->id == *attempt.guest_of;
  if (same && theirs->state < AttemptState::ending) return std::nullopt;
  const bool over = draft.host == nullptr || !draft.host->job || draft.host->job->stop != model::StopReason::none;
  const std::string name = draft.job->value.spec.cluster.value_or("");
  const std::string why = same && theirs->verdict ? ": " + theirs->verdict->message : std::string();
  return Asked{std::string(over ? cause::kClusterEnded : cause::kClusterLost),
               fmt::format("the cluster '{}' {} under the job{}", name, over ? "was ended" : "was lost", why),
               same ? theirs->state_since : draft.now()};
}

}  // namespace

AttemptFacts facts_of(const Draft& draft) {
  AttemptFacts facts;
  const model::Attempt& attempt = draft.attempt->value;
  facts.stage = json::enum_name(attempt.state);
  facts.completion = draft.job->value.spec.completion;
  for (const auto& node : draft.nodes) {
    if (node->leaving) continue;
    NodeFacts one{node->id, node->role, node->index, node->fact, node->status};
    // What a dead node's agent had left to say comes with the salvage; judge it only then.
    const bool heard_out = node->state == NodeState::gone || draft.memory(node->id).salvaged;
    if (proven_dead(node.value) && !heard_out) one.fact = {};
    facts.nodes.push_back(std::move(one));
  }
  facts.cluster_end = cluster_end(draft);
  if (attempt.stop_asked && attempt.verdict) {
    facts.asked = Asked{attempt.verdict->cause, attempt.verdict->message, draft.marked(kAskedMark).value_or(draft.now())};
  }
  return facts;
}

void step_attempt(Draft& draft) {
  if (!draft.attempt || !draft.job) return;
  Tracked<model::Node>* head = head_of(draft);
  if (head == nullptr) return;
  collect(draft);
  if (draft.attempt->value.state == AttemptState::ending) return step_ending(draft);
  advance(draft, *head);
  check_stop(draft);
  check_deadlines(draft, *head);

  AttemptFacts facts = facts_of(draft);
  const std::optional<Asked> asked = std::exchange(facts.asked, std::nullopt);
  const std::optional<model::Verdict> over = classify(facts);
  facts.asked = asked;
  if (over) return begin_end(draft, *classify(facts));
  if (!asked) return;
  // Our own end: the driver gets its grace, if there is one.
  const bool active = driver_active((*head)->status.driver);
  const Duration limit = draft.job->value.spec.limits.stop_grace.d + kStopMargin;
  if (!active || draft.passed("stop/" + draft.attempt->value.id.value, asked->at, limit)) return begin_end(draft, *classify(facts));
  if (!(*head)->stop_driver) {
    (*head)->stop_driver = true;
    ++(*head)->generation;
    draft.touch(*head, "node.asked", "asked to stop the entrypoint");
  }
}

}  // namespace helio::control
