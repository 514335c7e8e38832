#include "node/machine.h"

#include "base/json/json.h"
#include "node/diagnosis.h"

#include <algorithm>

namespace helio::node {

namespace cause = model::cause;
using model::DriverPhase;
using model::Phase;
using model::ProcessState;

namespace {

constexpr Duration kTailWait = 500ms;       ///< Ray's record is terminal: so long may the driver's log still grow
constexpr Duration kRowHold = 1s;           ///< a dead row: the node's own agent names a better cause within this
constexpr Duration kWorkersLeave = 1500ms;  ///< the head waits so long for its workers to leave before it goes
constexpr Duration kTermGrace = 5s;         ///< between SIGTERM and SIGKILL of `ray start`
constexpr Duration kKillAgain = 1s;         ///< a process may be born while all are being killed
constexpr Duration kDrainPoll = 50ms;       ///< are there processes left
constexpr Duration kRefusedWait = 500ms;    ///< before an entrypoint that was refused is submitted again
constexpr std::int32_t kRefusalsMax = 10;   ///< then the cluster does not take it
constexpr Duration kAbsentMax = 15s;        ///< an announced submission that the cluster does not know after this never arrived
constexpr Duration kStopPending = 3s;       ///< Ray never ends a job that waits for resources: it is our record that ends it
constexpr Duration kStopMargin = 3s;        ///< on top of the grace that Ray itself gives the driver
constexpr Duration kStopRecordMargin = 5s;  ///< after the kill, for Ray's record to follow
constexpr Duration kOomNear = 10s;          ///< a kill for memory explains falls so long after it
constexpr std::size_t kEvidenceBytes = 512;

model::ProcessStatus process_status(const std::optional<ProcessFact>& fact) {
  if (!fact) return {};
  return {fact->running ? ProcessState::running : ProcessState::exited, fact->running ? std::nullopt : fact->exit_code};
}

bool fell(const std::optional<ProcessFact>& fact) { return fact && !fact->running; }

bool terminal(std::string_view ray_status) { return ray_status == "STOPPED" || ray_status == "SUCCEEDED" || ray_status == "FAILED"; }

void wake(Step& step, Duration after) { step.again = step.again ? std::min(*step.again, after) : after; }

std::string tail_of(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t from = text.size() - bytes;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) ++from;  // not inside a UTF-8 character
  return std::string(text.substr(from));
}

/// The beginning and the last line of a long text: Ray's messages say what failed first, and why last.
std::string gist_of(std::string_view text) {
  if (text.size() <= kEvidenceBytes) return std::string(text);
  std::size_t bytes = kEvidenceBytes / 3;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return std::string(text.substr(0, bytes)) + " … " + last_line(text);
}

}  // namespace

Machine::Machine(NodeId node, std::string agent_version, Journal journal) : journal_(std::move(journal)) {
  status_.node = std::move(node);
  status_.agent_version = std::move(agent_version);
  status_.sequence = journal_.sequence;
}

bool Machine::assign(const model::Assignment& assignment) {
  if (assignment.generation <= assignment_.generation || assignment.generation < journal_.generation) return false;
  const Phase before = assignment_.phase;
  assignment_ = assignment;
  assignment_.phase = std::max(before, assignment.phase);  // a phase is only ever raised
  journal_.generation = assignment_.generation;
  return true;
}

Step Machine::step(const Facts& facts) {
  Step step;
  if (exit_sent_) return step;
  observe(facts);
  if (!node_broken_ && !drain_since_) watch_processes(facts, step);
  if (node_broken_ || wanted() >= Phase::drained) {
    drain(facts, step);
  } else {
    start(facts, step);
    if (head()) drive(facts, step);
  }
  set_watches(facts, step);
  finish_status(facts);
  return step;
}

void Machine::mark(std::string_view name, Timestamp at) {
  for (const model::Mark& existing : status_.marks) {
    if (existing.name == name) return;
  }
  status_.marks.push_back({std::string(name), at});
}

void Machine::fault(const Facts& facts, std::string_view cause, std::string message, std::optional<std::int32_t> exit_code) {
  if (status_.fault) return;
  model::NodeFault fault;
  fault.cause = cause;
  fault.message = std::move(message);
  fault.exit_code = exit_code;
  fault.at = facts.now;
  if (!facts.start_log_tail.empty()) fault.evidence.push_back({"ray_start.log", tail_of(facts.start_log_tail, kEvidenceBytes), facts.now});
  status_.fault = std::move(fault);
}

void Machine::observe(const Facts& facts) {
  mark("agent_up", facts.now);
  status_.ray_start = process_status(facts.ray_start);
  if (facts.ray_start) ray_asked_ = true;
  // On the head, what accepts before Ray is started is another program.
  if ((ray_asked_ || !head()) && facts.gcs_port_open && !fell(facts.gcs)) {
    status_.gcs_up = true;
    mark("gcs_up", facts.now);
  }
  if (facts.raylet && facts.raylet->running) mark("raylet_up", facts.now);
  if (facts.driver_first_line) mark("first_line", facts.now);
  if (facts.oom_kills > oom_handled_) {
    oom_handled_ = facts.oom_kills;
    oom_at_ = facts.mono;
    status_.oom = model::OomKills{facts.oom_kills, facts.oom_after, facts.now};
  }
  if (!head()) {
    joined_ = joined_ || (facts.raylet && facts.raylet->running);
    return;
  }
  status_.api_up = facts.api_up;
  status_.head_agent_up = facts.head_agent_up;
  if (facts.api_up) mark("api_up", facts.now);
  if (facts.head_agent_up) mark("head_agent_up", facts.now);
  if ((status_.gcs_up || submitter()) && facts.api_up && facts.head_agent_up) joined_ = true;
  if (submitter()) return;
  status_.nodes_joined = facts.rows_alive;
  status_.nodes_alive = static_cast<std::int32_t>(facts.rows_alive.size());
  if (status_.nodes_alive >= assignment_.nodes) mark("nodes_alive", facts.now);
}

// --- what fell ------------------------------------------------------------------------------------------------------------------

void Machine::note_falls(const Facts& facts) {
  const auto note = [&](Watched what, const std::optional<ProcessFact>& fact) {
    if (!fell(fact)) return;
    for (const Fall& known : falls_) {
      if (known.what == what) return;
    }
    falls_.push_back({what, facts.mono, fact->exit_code});
  };
  // Within one moment the order is that of precedence: what takes the others with it comes first.
  note(Watched::gcs, facts.gcs);
  note(Watched::raylet, facts.raylet);
  note(Watched::dashboard, facts.dashboard);
  note(Watched::ray_start, facts.ray_start);
}

void Machine::watch_processes(const Facts& facts, Step& step) {
  if (facts.disk_full) {
    fault(facts, cause::kNodeDiskFull, "the node's disk budget, or its file system, is full: raise disk_limit or write less");
    node_broken_ = true;
    return;
  }
  if (assignment_.leaving && (fell(facts.raylet) || fell(facts.ray_start))) {
    left_ = true;
    return;
  }
  note_falls(facts);
  if (!falls_.empty()) {
    // The deaths that one death causes arrive within moments of it and in any order: look at all of them together.
    const Duration waited = facts.mono - falls_.front().at;
    if (waited < kSettle && wanted() < Phase::drained) {
      wake(step, kSettle - waited);
      return;
    }
    decide_fall(facts);
    node_broken_ = true;
    return;
  }
  if (head() && !submitter()) watch_rows(facts, step);
}

void Machine::decide_fall(const Facts& facts) {
  const auto find = [&](Watched what) {
    return std::find_if(falls_.begin(), falls_.end(), [&](const Fall& fall) { return fall.what == what; });
  };
  const auto start = find(Watched::ray_start);
  const std::optional<std::int32_t> start_code = start == falls_.end() ? std::nullopt : start->exit_code;
  if (oom_at_ && facts.mono - *oom_at_ <= kOomNear) {
    fault(facts, cause::kNodeOom, "the node used more memory than its limit and was killed: choose a larger flavor or use less", 137);
    return;
  }
  // `ray start` exits 1 when a child ends; a signal came from outside, and its children go with it by their parent-death signals.
  if (start_code && *start_code >= 128) {
    fault(facts, cause::kRayStartDied, "`ray start` was killed by signal " + std::to_string(*start_code - 128), start_code);
    return;
  }
  Watched root = falls_.front().what;
  if (start != falls_.end()) {
    // Before it exits, `ray start` kills its other children; which one fell first is in what it printed.
    const StartReport report = read_start_report(facts.start_log_tail);
    if (report.gcs) {
      root = Watched::gcs;
    } else if (report.raylet) {
      root = Watched::raylet;
    } else if (report.dashboard) {
      root = Watched::dashboard;
    } else if (!report.other.empty()) {
      fault(facts, cause::kRayStartDied, "`ray start` gave up because its process " + report.other + " ended", start_code);
      return;
    }
  }
  if (!joined_) {
    const StartProblem problem = read_start_problem(facts.start_log_tail, start_code).problem;
    if (problem != StartProblem::unknown || root == Watched::ray_start) return fail_start(facts, start_code);
  }
  switch (root) {
    case Watched::gcs:
      return fault(facts, cause::kGcsDied, "the cluster's GCS server process ended");
    case Watched::raylet:
      return fault(facts, cause::kRayletDied, "the node's raylet process ended");
    case Watched::dashboard:
      return fault(facts, cause::kDashboardDied, "the head's dashboard process ended, and with it the Jobs API");
    case Watched::ray_start:
      break;
  }
  fault(facts, cause::kRayStartDied, "`ray start` ended with exit code " + std::to_string(start_code.value_or(0)), start_code);
}

void Machine::fail_start(const Facts& facts, std::optional<std::int32_t> exit_code) {
  const StartFinding finding = read_start_problem(facts.start_log_tail, exit_code);
  const std::string said = finding.line.empty() ? std::string() : ": " + finding.line;
  switch (finding.problem) {
    case StartProblem::port_in_use:
      return fault(facts, cause::kPortInUse, "a port of this node was taken by another program" + said, exit_code);
    case StartProblem::image_broken:
      return fault(facts, cause::kImageBroken, "Ray could not be started from " + assignment_.prefix + said, exit_code);
    case StartProblem::unknown:
      break;
  }
  fault(facts, cause::kRayStartFailed,
        "`ray start` ended with exit code " + std::to_string(exit_code.value_or(0)) + " before the node had joined" + said, exit_code);
}

void Machine::watch_rows(const Facts& facts, Step& step) {
  const auto gone = std::find_if(facts.rows_dead.begin(), facts.rows_dead.end(), [&](const NodeId& node) {
    const auto in = [&](const std::vector<NodeId>& nodes) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); };
    return !in(facts.rows_alive) && !in(assignment_.leaving_nodes);
  });
  // Once the driver is over or shall be, nodes leave because they were told to.
  const bool leaving = status_.driver.phase == DriverPhase::ended || assignment_.stop_driver;
  if (gone == facts.rows_dead.end() || status_.fault || leaving) {
    row_dead_since_.reset();
    return;
  }
  if (!row_dead_since_) row_dead_since_ = facts.mono;
  const Duration waited = facts.mono - *row_dead_since_;
  if (waited < kRowHold) {
    wake(step, kRowHold - waited);
    return;
  }
  fault(facts, cause::kGcsRowDead, "the cluster's GCS calls node " + gone->value + " dead");
  status_.fault->evidence = {{"gcs", gone->value, facts.now}};
  if (*gone == status_.node) node_broken_ = true;
}

// --- the way up -----------------------------------------------------------------------------------------------------------------

void Machine::start(const Facts& facts, Step& step) {
  if (wanted() < Phase::joined) {
    status_.step = "waiting for work";
    return;
  }
  if (submitter()) {
    if (!joined_) {
      status_.step = "waiting for the cluster to answer";
    } else {
      status_.reached = std::max(status_.reached, std::min(wanted(), Phase::checked));
    }
    return;
  }
  if (!ray_asked_) {
    if (!head() && !facts.gcs_port_open) {
      status_.step = "waiting for the head's GCS at " + assignment_.head_address + ":" + std::to_string(assignment_.head_port_base);
      return;
    }
    ray_asked_ = true;
    mark("ray_exec", facts.now);
    step.actions.emplace_back(action::StartRay{});
  }
  if (!joined_) {
    if (!head()) {
      status_.step = "starting Ray";
    } else if (!status_.gcs_up) {
      status_.step = "starting Ray: waiting for its GCS";
    } else {
      status_.step = facts.api_up ? "starting Ray: waiting for its agent on the head" : "starting Ray: waiting for its dashboard";
    }
    return;
  }
  status_.reached = std::max(status_.reached, Phase::joined);
  if (!head()) {
    status_.reached = std::max(status_.reached, std::min(wanted(), Phase::driving));
    status_.step = "serving";
    return;
  }
  drain_others(facts, step);
  if (status_.nodes_alive < assignment_.nodes) {
    if (status_.reached >= Phase::checked) watch_idle(facts);  // more are to come; what is there is in use or not
    status_.step = "waiting for nodes: " + std::to_string(status_.nodes_alive) + " of " + std::to_string(assignment_.nodes) + " are alive";
    return;
  }
  status_.reached = std::max(status_.reached, std::min(wanted(), Phase::checked));
  if (wanted() < Phase::driving || !assignment_.driver) status_.step = "ready";
  watch_idle(facts);
}

void Machine::drain_others(const Facts& facts, Step& step) {
  for (const NodeId& node : assignment_.leaving_nodes) {
    const bool alive = std::find(facts.rows_alive.begin(), facts.rows_alive.end(), node) != facts.rows_alive.end();
    if (alive && asked_to_drain_.insert(node).second) step.actions.emplace_back(action::DrainNode{node});
  }
}

/// A job that came and went between two looks counts too: its end is in the table.
void Machine::watch_idle(const Facts& facts) {
  if (assignment_.watch_idle.d == Duration(0) || facts.cluster_busy.value_or(true)) {
    status_.idle_since.reset();
    return;
  }
  if (!status_.idle_since) status_.idle_since = facts.now;
  if (facts.cluster_last_end) status_.idle_since = std::max(*status_.idle_since, std::min(*facts.cluster_last_end, facts.now));
}

// --- the driver -----------------------------------------------------------------------------------------------------------------

void Machine::drive(const Facts& facts, Step& step) {
  status_.logs_caught_up = facts.logs_caught_up;
  if (!assignment_.driver || status_.driver.phase == DriverPhase::ended) {
    if (status_.driver.phase == DriverPhase::ended) status_.step = "the driver has ended";
    return;
  }
  status_.driver.submission_id = assignment_.driver->submission_id;
  if (submission_ == Submission::none && journal_.submit_announced && !journal_.submit_refused) submission_ = Submission::looking;
  if (submission_ == Submission::none || submission_ == Submission::announced) {
    if (!assignment_.stop_driver) return submit(facts, step);
  } else if (submission_ != Submission::found) {
    look(facts, step);
  }
  if (submission_ == Submission::found) follow(facts, step);
  if (assignment_.stop_driver && status_.driver.phase != DriverPhase::ended) stop(facts, step);
}

void Machine::submit(const Facts& facts, Step& step) {
  if (wanted() < Phase::driving || !complete() || !facts.api_up || !facts.head_agent_up) return;
  status_.step = "submitting the entrypoint";
  if (submission_ == Submission::announced) {
    submission_ = Submission::posting;
    status_.driver.phase = DriverPhase::submitting;
    step.actions.emplace_back(action::SubmitDriver{});
    return;
  }
  if (refused_at_ && facts.mono - *refused_at_ < kRefusedWait) {
    wake(step, kRefusedWait - (facts.mono - *refused_at_));
    return;
  }
  submission_ = Submission::announced;
  journal_.submit_announced = true;
  journal_.submit_refused = false;
  step.actions.emplace_back(action::AnnounceSubmit{});
  wake(step, Duration{0});
}

void Machine::look(const Facts& facts, Step& step) {
  const bool answered = submission_ == Submission::posting && facts.post == Facts::Post::accepted;
  if (facts.driver_known || answered) {
    submission_ = Submission::found;
    if (!journal_.submitted_at) journal_.submitted_at = facts.now;
    mark("submitted", *journal_.submitted_at);
    status_.reached = std::max(status_.reached, Phase::driving);
    return;
  }
  if (submission_ == Submission::posting && facts.post == Facts::Post::unclear) submission_ = Submission::looking;
  if (submission_ == Submission::posting) {
    if (facts.post != Facts::Post::refused) return;
    if (!facts.post_final && !facts.driver_absent) return;  // only a cluster that does not know it may be asked again
    journal_.submit_refused = true;
    submission_ = Submission::none;
    refused_at_ = facts.mono;
    wake(step, Duration{0});
    if (!facts.post_final && ++refusals_ < kRefusalsMax) return;
    status_.driver.message = facts.post_error;
    status_.driver.ray_status = "FAILED";
    status_.driver.phase = DriverPhase::ended;
    mark("driver_end", facts.now);
    return fault(facts, facts.post_final ? cause::kEntrypointNotStarted : cause::kUnknown,
                 "the cluster's Jobs API refused the entrypoint: " + gist_of(facts.post_error));
  }
  status_.step = "looking for the entrypoint that was submitted before";
  status_.driver.phase = DriverPhase::submitting;
  if (!facts.driver_absent) {
    absent_since_.reset();
    return;
  }
  if (!absent_since_) absent_since_ = facts.mono;
  const Duration waited = facts.mono - *absent_since_;
  if (waited < kAbsentMax) {
    wake(step, kAbsentMax - waited);
    return;
  }
  // It may still be on its way somewhere: submitting it again could run it twice. Another attempt is the safe answer.
  status_.driver.phase = DriverPhase::ended;
  status_.driver.ray_status = "FAILED";
  mark("driver_end", facts.now);
  fault(facts, cause::kUnknown, "the entrypoint was handed to the cluster, whose Jobs API does not know it");
}

void Machine::follow(const Facts& facts, Step& step) {
  model::DriverStatus& driver = status_.driver;
  driver.ray_status = facts.driver_ray_status;
  driver.error_type = facts.driver_error_type;
  driver.message = facts.driver_message;
  driver.log_node = facts.driver_log_node.empty() ? status_.node.value : facts.driver_log_node;
  if (!terminal(facts.driver_ray_status)) {
    const bool runs = facts.driver_ray_status == "RUNNING";
    if (!stop_sent_) driver.phase = runs ? DriverPhase::running : DriverPhase::pending;
    status_.step = runs ? "the entrypoint is running" : "the entrypoint is waiting to run";
    return;
  }
  if (!terminal_since_) {
    terminal_since_ = facts.mono;
    mark("driver_end", facts.now);
  }
  // Ray tells the death of the shell itself by a negative signal number; everywhere else that is 128 + signal.
  driver.exit_code = facts.driver_exit_code;
  if (driver.exit_code && *driver.exit_code < 0) driver.exit_code = 128 - *driver.exit_code;
  const Duration waited = facts.mono - *terminal_since_;
  if (!facts.driver_log_complete && waited < kTailWait) {
    wake(step, kTailWait - waited);
    return;
  }
  driver.phase = DriverPhase::ended;
  status_.step = "the driver has ended";
  if (facts.driver_ray_status == "FAILED") classify_driver(facts);
}

void Machine::stop(const Facts& facts, Step& step) {
  if (!stop_since_) stop_since_ = facts.mono;
  const Duration waited = facts.mono - *stop_since_;
  const auto end = [&](std::string message) {
    status_.driver.phase = DriverPhase::ended;
    status_.driver.ray_status = "STOPPED";
    status_.driver.message = std::move(message);
    status_.step = "the driver has ended";
    mark("driver_end", facts.now);
  };
  if (submission_ == Submission::none || submission_ == Submission::announced) return end("stopped before it was submitted");
  if (terminal_since_) return;  // follow() ends it
  status_.driver.phase = DriverPhase::stopping;
  status_.step = "stopping the entrypoint";
  const Duration grace = assignment_.stop_grace.d;
  if (submission_ == Submission::found && !stop_sent_) {
    stop_sent_ = true;
    step.actions.emplace_back(action::StopDriver{});
  }
  if (facts.driver_ray_status != "RUNNING" && submission_ == Submission::found) {
    if (waited >= kStopPending) return end("stopped before it ran");
    wake(step, kStopPending - waited);
    return;
  }
  if (waited >= grace + kStopMargin && !stop_kill_sent_) {
    stop_kill_sent_ = true;
    step.actions.emplace_back(action::StopDriver{.kill = true});
  }
  if (waited >= grace + kStopMargin + kStopRecordMargin) return end("stopped; the cluster's Jobs API did not confirm it");
  wake(step, (stop_kill_sent_ ? grace + kStopMargin + kStopRecordMargin : grace + kStopMargin) - waited);
}

void Machine::classify_driver(const Facts& facts) {
  if (!falls_.empty() || assignment_.stop_driver) return;  // the fall explains it, or we wanted it
  if (oom_at_ && facts.mono - *oom_at_ <= kOomNear) {
    return fault(facts, cause::kNodeOom, "the driver's node used more memory than its limit, and the kernel killed a process of it", 137);
  }
  const std::string text = gist_of(facts.driver_message);
  switch (read_driver_problem(facts.driver_error_type, facts.driver_message)) {
    case DriverProblem::runtime_env:
      return fault(facts, cause::kRuntimeEnv, "the runtime environment could not be set up: " + text);
    case DriverProblem::supervisor:
      return fault(facts, cause::kSupervisorDied, "Ray's job supervisor ended: " + text);
    case DriverProblem::unschedulable:
      return fault(facts, cause::kInfeasible, "no node of the cluster can hold the resources that the entrypoint asks for: " + text);
    case DriverProblem::start_timeout:
      return fault(facts, assignment_.driver->resources ? cause::kInfeasible : cause::kSupervisorDied,
                   "Ray's job supervisor did not start in time: " + text);
    case DriverProblem::not_started:
      return fault(facts, cause::kEntrypointNotStarted, "the entrypoint could not be started: " + text);
    case DriverProblem::none:
      return;  // its exit code says it
  }
}

// --- the way down ---------------------------------------------------------------------------------------------------------------

void Machine::drain(const Facts& facts, Step& step) {
  if (!drain_since_) drain_since_ = facts.mono;
  const bool at_once = node_broken_ || wanted() == Phase::gone;
  const bool ray_runs = facts.ray_start && facts.ray_start->running;
  if (ray_runs || facts.processes_left) {
    status_.step = "ending the node's processes";
    const Duration waited = facts.mono - *drain_since_;
    if (!at_once && ray_runs && !drain_kill_sent_) {
      const bool alone = facts.rows_alive.size() <= 1;
      if (!drain_term_sent_ && head() && !alone && waited < kWorkersLeave) {
        status_.step = "waiting for the workers to leave";
        wake(step, std::min(kWorkersLeave - waited, kDrainPoll));
        return;
      }
      if (!drain_term_sent_) {
        drain_term_sent_ = true;
        drain_term_at_ = facts.mono;
        step.actions.emplace_back(action::SignalRay{15});
      }
      if (facts.mono - *drain_term_at_ < kTermGrace) {
        wake(step, kDrainPoll);
        return;
      }
    }
    if (!drain_kill_sent_ || facts.mono - *drain_term_at_ >= kKillAgain) {
      drain_kill_sent_ = true;
      drain_term_at_ = facts.mono;
      step.actions.emplace_back(action::KillAll{});
    }
    wake(step, kDrainPoll);
    return;
  }
  status_.reached = std::max(status_.reached, Phase::drained);
  status_.logs_complete = finish_asked_ && facts.logs_shipped;
  if (wanted() != Phase::gone) {
    if (!finish_asked_) {
      finish_asked_ = true;
      step.actions.emplace_back(action::FinishStreams{});
      wake(step, Duration{0});
    }
    if (!status_.logs_complete) {
      status_.step = facts.daemon_connected ? "shipping logs" : "waiting for the daemon to take the logs";
      return;
    }
  }
  status_.reached = Phase::gone;
  status_.step = "gone";
  exit_sent_ = true;
  step.actions.emplace_back(action::Exit{status_.fault ? 1 : 0});
}

// --- watches and status ---------------------------------------------------------------------------------------------------------

void Machine::set_watches(const Facts& facts, Step& step) {
  const bool going = drain_since_.has_value();
  const bool want_gcs = !going && wanted() >= Phase::joined && !status_.gcs_up && !submitter();
  Duration cluster{0};
  if (head() && !going && (status_.gcs_up || (submitter() && wanted() >= Phase::joined))) {
    const DriverPhase phase = status_.driver.phase;
    if (!complete()) {
      cluster = 100ms;
    } else if (facts.driver_process && !terminal_since_) {
      cluster = facts.driver_process->running && phase != DriverPhase::stopping ? Duration(1s) : Duration(50ms);
    } else if (phase != DriverPhase::none && phase != DriverPhase::ended) {
      cluster = 200ms;
    } else {
      cluster = 1s;
    }
  } else if (going && head() && !submitter() && !node_broken_ && !drain_term_sent_ && wanted() == Phase::drained) {
    cluster = 100ms;  // are the workers gone
  }
  const Duration gcs = want_gcs ? Duration(20ms) : Duration(0);
  if (gcs != gcs_every_) step.actions.emplace_back(action::WatchGcsPort{gcs});
  if (cluster != cluster_every_) step.actions.emplace_back(action::WatchCluster{cluster});
  gcs_every_ = gcs;
  cluster_every_ = cluster;
}

void Machine::finish_status(const Facts&) {
  status_.generation = assignment_.generation;
  json::Value value = json::encode(status_);
  value.as_object().erase("usage");
  value.as_object().erase("sequence");
  std::string text = json::dump(value);
  if (text == last_status_) return;
  last_status_ = std::move(text);
  ++status_.sequence;
}

}  // namespace helio::node
