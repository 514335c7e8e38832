#include "control/classify.h"

#include "control/driver_output.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <tuple>
#include <utility>

namespace helio::control {
namespace {

namespace cause = model::cause;
using model::Verdict;

constexpr std::size_t kEvidenceText = 512;
/// A node's death is noticed a moment after it, so a driver that failed this shortly before it still failed because of it.
constexpr Duration kNoticeDelay = 2s;
/// A kill for memory explains a driver that fails so long after it: Ray repeats the task some times before it gives up.
constexpr Duration kOomNear = 10s;

/// One possible root, with the time that orders it.
struct Candidate {
  Timestamp at;
  int rank = 0;  ///< among equal times: what we asked for (0), then the head (1), then workers
  Verdict verdict;
};

void add_evidence(Verdict& verdict, std::string source, std::string text, std::optional<Timestamp> at) {
  if (text.empty()) return;
  if (text.size() > kEvidenceText) {
    std::size_t cut = kEvidenceText;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;  // not inside a character
    text.resize(cut);
  }
  verdict.evidence.push_back({std::move(source), std::move(text), at});
}

/// What to do next, by cause.
std::string_view advice(std::string_view id) {
  static constexpr std::array kAdvice{
      std::pair{cause::kRayStartFailed, "see the node's ray_start log"},
      std::pair{cause::kPortInUse, "another process holds a port of the node; it is retried with other ports"},
      std::pair{cause::kNodeOom, "give the node more memory or use less"},
      std::pair{cause::kNodeDiskFull, "write less to local disk, or raise disk_limit"},
      std::pair{cause::kImageBroken, "check the image with `helio images`"},
      std::pair{cause::kRuntimeEnv, "correct runtime_env; its log is in the head's Ray logs"},
      std::pair{cause::kInfeasible, "ask for less in entrypoint.resources, or add workers that have it"},
      std::pair{cause::kEntrypointExit, "see the end of the driver's log"},
      std::pair{cause::kEntrypointSignal, "see the driver's log and the node's memory"},
      std::pair{cause::kEntrypointNotStarted, "see the head's Ray logs"},
      std::pair{cause::kProviderFailed, "see the daemon's log and `helio doctor`"},
  };
  for (const auto& [name, text] : kAdvice) {
    if (name == id) return text;
  }
  return {};
}

Verdict plain(std::string_view id, const AttemptFacts& facts, std::string message) {
  Verdict verdict;
  verdict.cause = std::string(id);
  verdict.charged_to = model::cause_class(id);
  verdict.stage = facts.stage;
  verdict.message = std::move(message);
  return verdict;
}

Verdict make(std::string_view id, const AttemptFacts& facts, std::string message) {
  const std::string_view next = advice(id);
  Verdict verdict = plain(id, facts, next.empty() ? std::move(message) : fmt::format("{}; {}", message, next));
  if (id == cause::kUnknown) verdict.confidence = model::Confidence::low;
  return verdict;
}

bool after_teardown(const AttemptFacts& facts, std::optional<Timestamp> at) {
  return facts.teardown_since && at && *at >= *facts.teardown_since;
}

int rank_of(const NodeFacts& node) { return node.role == model::Role::head ? 1 : 2 + node.index; }

std::string exit_text(const model::ProviderFact& fact) {
  if (!fact.detail.empty()) return fact.detail;
  if (!fact.exit_code) return "no reason known";
  return *fact.exit_code > 128 ? fmt::format("signal {}", *fact.exit_code - 128) : fmt::format("exit {}", *fact.exit_code);
}

/// The fault that a node's agent reported itself.
std::optional<Candidate> agent_fault(const AttemptFacts& facts, const NodeFacts& node) {
  if (!node.status.fault || after_teardown(facts, node.status.fault->at)) return std::nullopt;
  const model::NodeFault& fault = *node.status.fault;
  const std::string name = node_name(node.role, node.index);
  Candidate out;
  out.at = fault.at.value_or(Timestamp{0});
  out.rank = rank_of(node);
  out.verdict = make(fault.cause, facts, fmt::format("{}: {}", name, fault.message.empty() ? fault.cause : fault.message));
  // The head's word on another node names that one in its evidence.
  const bool of_other = fault.cause == cause::kGcsRowDead && !fault.evidence.empty();
  out.verdict.node = of_other ? fault.evidence.front().text : node.id.value;
  out.verdict.exit_code = fault.exit_code;
  for (const model::Evidence& evidence : fault.evidence)
    add_evidence(out.verdict, name + "/" + evidence.source, evidence.text, evidence.at);
  if (fault.evidence.empty()) add_evidence(out.verdict, name + "/agent", fault.message, fault.at);
  return out;
}

/// A node that is dead, or could not be made, although nobody asked it to go.
std::optional<Candidate> provider_fault(const AttemptFacts& facts, const NodeFacts& node) {
  using enum model::ProviderState;
  const model::ProviderFact& fact = node.fact;
  const bool dead = fact.state == ended || fact.state == absent;
  const bool failed = !dead && fact.cause == cause::kProviderFailed;
  const bool broken = !dead && fact.cause == cause::kImageBroken;
  if ((!dead && !failed && !broken) || after_teardown(facts, fact.at)) return std::nullopt;
  if (facts.teardown_since && !fact.at) return std::nullopt;
  // The agent had already said why and left.
  if (node.status.fault) return std::nullopt;
  const std::string name = node_name(node.role, node.index);
  Candidate out;
  out.at = fact.at.value_or(Timestamp{0});
  out.rank = rank_of(node);
  const std::string_view id = fact.cause.empty() ? cause::kAgentDied : std::string_view(fact.cause);
  std::string message;
  if (!dead) {
    message = fmt::format("{} could not be made: {}", name, fact.detail);
  } else if (id == cause::kHostReboot) {
    message = fmt::format("the host of {} was restarted", name);
  } else if (id == cause::kAgentDied) {
    message = fmt::format("the agent of {} died ({}), and its node with it", name, exit_text(fact));
  } else {
    message = fmt::format("{} ended: {}", name, exit_text(fact));
  }
  out.verdict = make(id, facts, std::move(message));
  out.verdict.node = node.id.value;
  out.verdict.exit_code = fact.exit_code;
  add_evidence(out.verdict, "provider", fmt::format("{}: {}", name, exit_text(fact)), fact.at);
  return out;
}

struct RayError {
  std::string_view type;
  std::string_view cause;
};
constexpr std::array kRayErrors{
    RayError{"RUNTIME_ENV_SETUP_FAILURE", cause::kRuntimeEnv},
    RayError{"JOB_SUPERVISOR_ACTOR_DIED", cause::kSupervisorDied},
    RayError{"JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE", cause::kInfeasible},
    RayError{"JOB_SUPERVISOR_ACTOR_START_TIMEOUT", cause::kEntrypointNotStarted},
    RayError{"JOB_SUPERVISOR_ACTOR_START_FAILURE", cause::kEntrypointNotStarted},
    RayError{"JOB_ENTRYPOINT_COMMAND_START_ERROR", cause::kEntrypointNotStarted},
};

/// Cause of a driver that failed without an exit code: by Ray's error type, or by the words that older versions use.
std::string_view failed_cause(const model::DriverStatus& driver) {
  for (const RayError& error : kRayErrors) {
    if (driver.error_type == error.type) return error.cause;
  }
  const std::string& text = driver.message;
  if (text.find("runtime_env setup failed") != std::string::npos ||
      text.find("Failed to set up runtime environment") != std::string::npos || text.find("setup_timeout_seconds") != std::string::npos) {
    return cause::kRuntimeEnv;
  }
  if (text.find("supervisor actor died") != std::string::npos || text.find("JobSupervisor") != std::string::npos) {
    return cause::kSupervisorDied;
  }
  return cause::kUnknown;
}

Verdict driver_failure(const AttemptFacts& facts, const model::DriverStatus& driver) {
  if (driver.ray_status == "STOPPED") {
    return make(cause::kStoppedUser, facts, "the entrypoint was stopped through the cluster's own Jobs API");
  }
  if (!driver.exit_code) {
    const std::string_view id = failed_cause(driver);
    return make(id, facts,
                id == cause::kSupervisorDied ? "Ray's job supervisor died" : fmt::format("the entrypoint failed: {}", driver.message));
  }
  const std::int32_t code = *driver.exit_code;
  const std::int32_t signal = code > 128 ? code - 128 : -code;
  if (signal > 0 && signal < 32) {
    const char* abbreviation = sigabbrev_np(signal);
    Verdict verdict = make(cause::kEntrypointSignal, facts,
                           fmt::format("the entrypoint was killed by signal {}{}", signal,
                                       abbreviation == nullptr ? std::string() : fmt::format(" (SIG{})", abbreviation)));
    verdict.confidence = model::Confidence::medium;  // a shell may also exit so by itself
    return verdict;
  }
  std::string message = fmt::format("the entrypoint exited with code {}", code);
  if (code == 126) message += " (the command cannot be executed)";
  if (code == 127) message += " (the command was not found)";
  if (const std::string reason = reason_in(output_in(driver.message)); !reason.empty()) message += ": " + reason;
  return make(cause::kEntrypointExit, facts, std::move(message));
}

/// The kernel killed processes of a node for its memory limit shortly before the driver failed: a task or an actor of it, most likely.
std::optional<Verdict> memory_failure(const AttemptFacts& facts, const model::DriverStatus& driver, Timestamp ended) {
  if (!driver.exit_code || driver.ray_status == "STOPPED") return std::nullopt;
  for (const NodeFacts& node : facts.nodes) {
    const auto& oom = node.status.oom;
    if (!oom || oom->by < ended - kOomNear || oom->after > ended) continue;
    const std::string name = node_name(node.role, node.index);
    Verdict verdict =
        make(cause::kNodeOom, facts,
             fmt::format("{} reached its memory limit and the kernel killed a process of it; then the entrypoint exited with code {}", name,
                         *driver.exit_code));
    verdict.confidence = model::Confidence::medium;
    verdict.node = node.id.value;
    add_evidence(verdict, name + "/agent", fmt::format("{} kills for the memory limit", oom->count), oom->by);
    return verdict;
  }
  return std::nullopt;
}

std::optional<Candidate> driver_end(const AttemptFacts& facts, const NodeFacts& head) {
  const model::DriverStatus& driver = head.status.driver;
  if (driver.phase != model::DriverPhase::ended) return std::nullopt;
  Candidate out;
  const auto mark = std::ranges::find(head.status.marks, std::string_view("driver_end"), &model::Mark::name);
  out.at = mark == head.status.marks.end() ? Timestamp{0} : mark->at;
  // A driver that ends because we take its cluster away proves nothing; one that had succeeded before did.
  if (driver.ray_status == "SUCCEEDED" || driver.exit_code == 0) {
    out.verdict = make(cause::kSucceeded, facts, "the entrypoint succeeded");
    out.verdict.exit_code = 0;
    return out;
  }
  if (after_teardown(facts, out.at)) return std::nullopt;
  auto memory = memory_failure(facts, driver, out.at);
  out.verdict = memory ? std::move(*memory) : driver_failure(facts, driver);
  out.verdict.exit_code = driver.exit_code;
  const std::string_view output = output_in(driver.message);
  add_evidence(out.verdict, "driver", std::string(output.empty() ? std::string_view(driver.message) : tail_of(output, kEvidenceText)),
               out.at);
  if (!driver.error_type.empty()) add_evidence(out.verdict, "ray", driver.error_type, out.at);
  return out;
}

}  // namespace

std::string node_name(model::Role role, std::int32_t index) { return role == model::Role::head ? "head" : fmt::format("w{}", index); }

std::optional<Verdict> classify(const AttemptFacts& facts) {
  std::vector<Candidate> roots;
  std::optional<Candidate> driver;
  for (const NodeFacts& node : facts.nodes) {
    if (auto fault = agent_fault(facts, node)) roots.push_back(std::move(*fault));
    if (auto fault = provider_fault(facts, node)) roots.push_back(std::move(*fault));
    if (node.role == model::Role::head) driver = driver_end(facts, node);
  }
  if (driver && driver->verdict.cause == cause::kSucceeded) {
    const bool all = facts.completion == model::Completion::all;
    const bool failed_before = std::ranges::any_of(roots, [&](const Candidate& root) { return root.at <= driver->at; });
    if (!all || !failed_before) return driver->verdict;
  }
  if (facts.cluster_end && !after_teardown(facts, facts.cluster_end->at)) {
    roots.push_back({facts.cluster_end->at, 1, plain(facts.cluster_end->cause, facts, facts.cluster_end->message)});
  }
  if (facts.asked) roots.push_back({facts.asked->at, 0, plain(facts.asked->cause, facts, facts.asked->message)});
  const auto first = std::ranges::min_element(roots, {}, [](const Candidate& c) { return std::tuple(c.at, c.rank); });
  if (!driver || driver->verdict.cause == cause::kSucceeded) {
    if (first == roots.end()) return std::nullopt;
    return first->verdict;
  }
  if (first == roots.end()) return driver->verdict;
  const bool ours = facts.asked && first->rank == 0;
  const Timestamp driver_wins_before = ours ? first->at : first->at - kNoticeDelay;
  return driver->at < driver_wins_before ? driver->verdict : first->verdict;
}

Decision decide(const model::Job& job, const Verdict& verdict) {
  Decision out;
  if (verdict.cause == cause::kSucceeded) {
    out.text = "final: succeeded";
    return out;
  }
  if (job.stop != model::StopReason::none || verdict.charged_to == model::CauseClass::none) {
    out.text = verdict.charged_to == model::CauseClass::none && job.stop == model::StopReason::none
                   ? "final: no retries after a deadline or stop"
                   : "final: a stop was asked";
    return out;
  }
  const std::string name(json::enum_name(verdict.charged_to));
  std::int32_t allowed = 0;
  switch (verdict.charged_to) {
    case model::CauseClass::user:
      allowed = job.spec.retries.user;
      break;
    case model::CauseClass::node:
      allowed = job.spec.retries.node;
      break;
    case model::CauseClass::platform:
      allowed = job.spec.retries.platform;
      break;
    case model::CauseClass::unknown:
      allowed = job.spec.retries.unknown;
      break;
    case model::CauseClass::none:
      break;
  }
  const auto charged = job.ledger.find(name);
  const std::int32_t used = charged == job.ledger.end() ? 0 : charged->second;
  if (allowed == 0) {
    out.text = fmt::format("final: no retries for {} errors", name);
    return out;
  }
  if (used >= allowed) {
    out.text = fmt::format("final: {} of {} retries for {} errors used", used, allowed, name);
    return out;
  }
  out.retry = true;
  out.backoff = job.spec.retries.backoff.d;
  for (std::int32_t i = 0; i < used && out.backoff < job.spec.retries.max_backoff.d; ++i) out.backoff *= 2;
  out.backoff = std::min(out.backoff, job.spec.retries.max_backoff.d);
  out.text = fmt::format("retry {} of {} for {} errors in {}", used + 1, allowed, name, format_duration(out.backoff));
  return out;
}

}  // namespace helio::control
