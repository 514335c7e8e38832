#pragma once
// What a node's agent does next: a pure function of its assignment, its journal and what it sees. The agent executes the actions;
// the simulation runs the same code on virtual time.
//
//   idle ─1─► starting ─2─► up ─3─► joined ─4─► (head) submitting ─5─► driving ─6─► driver over
//     any ─7─► draining ─8─► gone                 any ─9─► faulted ─7─► …
//
// 1 phase >= joined, head: at once; worker: GCS port of the head accepts   2 `ray start` runs   3 head: GCS accepts, API and head agent
// answer; worker: its raylet is up (the head sees its row)   4 phase driving and all nodes alive   5 POST answered or found
// 6 Ray's record is terminal and the log is at its end   7 phase drained/gone, or fault of this node   8 processes dead, logs shipped
// 9 one of the watches fell, and the settle window after the first fall is over
//
// A submitter is a head without Ray, for a driver in a cluster that others look after: it is joined when that answers, and goes on from
// there.

#include "base/clock.h"
#include "model/agent_protocol.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace helio::node {

/// What survives a restart of the agent's brain (it is written before the act that it announces).
struct Journal {
  bool submit_announced = false;  ///< written before the POST: from then on only look, never POST again unless `submit_refused`
  bool submit_refused = false;    ///< the cluster answered the announced POST with a refusal: it did not happen
  std::optional<Timestamp> submitted_at;
  std::int64_t generation = 0;
  std::int64_t sequence = 0;  ///< statuses of this life are numbered above it
};

struct ProcessFact {
  bool running = false;
  std::optional<std::int32_t> exit_code;  ///< set once when it ended; 128 + signal when killed
};

/// Everything the agent can see, refreshed before each step.
struct Facts {
  Timestamp now;
  MonoTime mono;
  bool daemon_connected = false;
  std::optional<ProcessFact> ray_start;
  std::optional<ProcessFact> raylet;     ///< child with comm `raylet`, once seen
  std::optional<ProcessFact> gcs;        ///< head
  std::optional<ProcessFact> dashboard;  ///< head
  /// The shell of the entrypoint, once found among this node's processes: it only decides how often the record is read.
  std::optional<ProcessFact> driver_process;
  bool gcs_port_open = false;  ///< head_address:head_port_base accepts
  bool api_up = false;
  bool head_agent_up = false;
  std::vector<NodeId> rows_alive;  ///< by the node's label (or RAY_CLOUD_INSTANCE_ID); head only
  std::vector<NodeId> rows_dead;
  /// Of a cluster that is watched for use: whether a job, a client or an actor is there; empty while nobody knows.
  std::optional<bool> cluster_busy;
  std::optional<Timestamp> cluster_last_end;  ///< when the last job in it ended
  bool driver_known = false;                  ///< the cluster's Jobs API has a record of our submission id
  bool driver_absent = false;                 ///< the cluster's Jobs API answered that it has none
  std::string driver_ray_status;              ///< PENDING RUNNING STOPPED SUCCEEDED FAILED
  std::string driver_error_type;
  std::string driver_message;
  std::string driver_log_node;  ///< node id that runs the driver, when Ray says so
  std::optional<std::int32_t> driver_exit_code;
  bool driver_first_line = false;    ///< the entrypoint wrote something; on the node that runs it
  bool driver_log_complete = false;  ///< all of it is read
  enum class Post { none, pending, accepted, refused, unclear } post = Post::none;
  bool post_final = false;  ///< with `refused`: a repetition would be refused too (HTTP 400, 413)
  std::string post_error;
  bool logs_shipped = false;    ///< all streams acknowledged to their ends
  bool logs_caught_up = false;  ///< all that was written by the end of the driver is acknowledged
  bool processes_left = false;  ///< any process of this node besides the agent
  /// Kernel kills (or the agent's own, where memory is watched) for the memory limit. It becomes node.oom when something fell with it:
  /// a watched process, or the driver. A killed task alone is Ray's to retry.
  std::int64_t oom_kills = 0;
  Timestamp oom_after;         ///< the last look that had not seen the newest of them
  bool disk_full = false;      ///< over disk_limit, or the file system is
  std::string start_log_tail;  ///< last lines of `ray start` and, when one fell, of the raylet and GCS logs: evidence
};

namespace action {
struct StartRay {};
/// POST …/stop; with `kill`: SIGKILL to the driver's processes, because Ray did not end it within its grace.
struct StopDriver {
  bool kill = false;
};
struct AnnounceSubmit {};  ///< write the journal, then SubmitDriver follows in the next step
struct SubmitDriver {};    ///< put packages, POST the job
struct SignalRay {
  int signal = 15;
};
/// Ray gives the node no more work; its raylet ends when what it has is done. Repeated until Ray has taken it.
struct DrainNode {
  NodeId node;
};
struct KillAll {};  ///< SIGKILL to everything but the agent
struct WatchCluster {
  Duration every{};
};  ///< poll rows and driver record this often; 0 = stop
struct WatchGcsPort {
  Duration every{};
};
struct FinishStreams {};  ///< read every file to its end, then mark streams ended
struct Exit {
  int code = 0;
};  ///< write the final status and leave
}  // namespace action

using Action =
    std::variant<action::StartRay, action::StopDriver, action::AnnounceSubmit, action::SubmitDriver, action::SignalRay, action::DrainNode,
                 action::KillAll, action::WatchCluster, action::WatchGcsPort, action::FinishStreams, action::Exit>;

struct Step {
  std::vector<Action> actions;
  std::optional<Duration> again;  ///< wake up after this even if nothing happens
};

/// One node's brain. Single thread. step() is deterministic in (state, assignment, journal, facts).
class Machine {
 public:
  Machine(NodeId node, std::string agent_version, Journal journal);

  /// Takes a newer assignment; an older or equal generation is ignored and false comes back.
  bool assign(const model::Assignment& assignment);
  /// Leave now, whatever the assignment says (SIGTERM to the agent): as phase `gone`.
  void leave() { leaving_ = true; }
  Step step(const Facts& facts);
  /// The whole observed state after the last step. `sequence` grows only when something but usage changed.
  [[nodiscard]] const model::AgentStatus& status() const { return status_; }
  [[nodiscard]] const Journal& journal() const { return journal_; }
  [[nodiscard]] const model::Assignment& assignment() const { return assignment_; }
  /// A sample for people; rides along with the next status and does not count as a change.
  void set_usage(const model::NodeUsage& usage) { status_.usage = usage; }

 private:
  enum class Watched { ray_start, gcs, raylet, dashboard };
  struct Fall {
    Watched what;
    MonoTime at;
    std::optional<std::int32_t> exit_code;
  };
  enum class Submission { none, announced, posting, looking, found };

  [[nodiscard]] model::Phase wanted() const {
    if (leaving_) return model::Phase::gone;
    return left_ ? std::max(assignment_.phase, model::Phase::drained) : assignment_.phase;
  }
  [[nodiscard]] bool head() const { return assignment_.role == model::Role::head; }
  [[nodiscard]] bool submitter() const { return assignment_.submitter; }
  /// All that the driver waits for is there.
  [[nodiscard]] bool complete() const { return joined_ && (submitter() || status_.nodes_alive >= assignment_.nodes); }
  void mark(std::string_view name, Timestamp at);
  void fault(const Facts& facts, std::string_view cause, std::string message, std::optional<std::int32_t> exit_code = {});
  void observe(const Facts& facts);
  void watch_processes(const Facts& facts, Step& step);
  void note_falls(const Facts& facts);
  void decide_fall(const Facts& facts);
  void fail_start(const Facts& facts, std::optional<std::int32_t> exit_code);
  void watch_idle(const Facts& facts);
  void drain_others(const Facts& facts, Step& step);
  void watch_rows(const Facts& facts, Step& step);
  void start(const Facts& facts, Step& step);
  void drive(const Facts& facts, Step& step);
  void submit(const Facts& facts, Step& step);
  void look(const Facts& facts, Step& step);
  void follow(const Facts& facts, Step& step);
  void stop(const Facts& facts, Step& step);
  void end_driver(const Facts& facts);
  void classify_driver(const Facts& facts);
  void drain(const Facts& facts, Step& step);
  void set_watches(const Facts& facts, Step& step);
  void finish_status(const Facts& facts);

  model::Assignment assignment_;
  model::AgentStatus status_;
  Journal journal_;
  std::string last_status_;  ///< JSON without sequence and usage, to see a change
  bool leaving_ = false;
  bool left_ = false;                ///< its raylet was drained, and has ended
  std::set<NodeId> asked_to_drain_;  ///< head: of the assignment's leaving_nodes
  bool ray_asked_ = false;
  bool joined_ = false;       ///< this node was complete once
  bool node_broken_ = false;  ///< a fault of this node itself: what is left of it is ended
  std::vector<Fall> falls_;   ///< in the order seen
  std::int64_t oom_handled_ = 0;
  std::optional<MonoTime> oom_at_;
  std::optional<MonoTime> row_dead_since_;

  Submission submission_ = Submission::none;
  std::int32_t refusals_ = 0;
  std::optional<MonoTime> refused_at_;
  std::optional<MonoTime> absent_since_;
  std::optional<MonoTime> terminal_since_;
  std::optional<MonoTime> stop_since_;
  bool stop_sent_ = false;
  bool stop_kill_sent_ = false;

  bool drain_term_sent_ = false;
  bool drain_kill_sent_ = false;
  bool finish_asked_ = false;
  bool exit_sent_ = false;
  std::optional<MonoTime> drain_since_;
  std::optional<MonoTime> drain_term_at_;
  Duration cluster_every_{};
  Duration gcs_every_{};
};

}  // namespace helio::node
