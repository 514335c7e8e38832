#pragma once
// What a node's agent does next: a pure function of its assignment, its journal and what it sees. The agent executes the actions;
// the simulation runs the same code on virtual time.
//
//   idle ─1─► starting ─2─► up ─3─► joined ─4─► (head) submitting ─5─► driving ─6─► driver over
//     any ─7─► draining ─8─► gone                 any ─9─► faulted ─7─► …
//
// 1 phase >= joined, head: at once; worker: GCS port of the head accepts   2 `ray start` runs   3 head: GCS accepts, API and head agent
// answer; worker: its row is ALIVE (the head sees it; a worker by its raylet being up)   4 phase driving and all nodes alive   5 POST
// answered or found 6 Ray's record is terminal and the log is at its end   7 phase drained/gone, or fault   8 processes dead, logs shipped
// 9 one of the watches fell

#include "base/clock.h"
#include "model/agent_protocol.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace helio::node {

/// What survives a restart of the agent's brain (it is written before the act that it announces).
struct Journal {
  bool submit_announced = false;  ///< written before the POST: from then on only look, never POST again unless `submit_refused`
  std::optional<Timestamp> submitted_at;
  std::int64_t generation = 0;
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
  bool gcs_port_open = false;            ///< head_address:head_port_base accepts
  bool api_up = false;
  bool head_agent_up = false;
  std::vector<NodeId> rows_alive;  ///< by RAY_CLOUD_INSTANCE_ID label; head only
  std::vector<NodeId> rows_dead;
  bool driver_known = false;      ///< the cluster's Jobs API has a record of our submission id
  std::string driver_ray_status;  ///< PENDING RUNNING STOPPED SUCCEEDED FAILED
  std::string driver_error_type;
  std::string driver_message;
  std::optional<std::int32_t> driver_exit_code;
  bool driver_first_line = false;    ///< the entrypoint wrote something
  bool driver_log_complete = false;  ///< all of it is read
  enum class Post { none, pending, accepted, refused, unclear } post = Post::none;
  std::string post_error;
  bool logs_shipped = false;    ///< all streams acknowledged to their ends
  bool processes_left = false;  ///< any process of this node besides the agent
  std::int64_t oom_kills = 0;   ///< of this node's cgroup
  bool disk_full = false;       ///< over disk_limit, or the file system is
  std::string start_log_tail;   ///< last lines of `ray start`, for evidence
};

namespace action {
struct StartRay {};
struct StopDriver {};      ///< POST …/stop
struct AnnounceSubmit {};  ///< write the journal, then SubmitDriver follows in the next step
struct SubmitDriver {};    ///< put packages, POST the job
struct SignalRay {
  int signal = 15;
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

using Action = std::variant<action::StartRay, action::StopDriver, action::AnnounceSubmit, action::SubmitDriver, action::SignalRay,
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
  Step step(const Facts& facts);
  /// The whole observed state after the last step. `sequence` grows only when something but usage changed.
  [[nodiscard]] const model::AgentStatus& status() const { return status_; }
  [[nodiscard]] const Journal& journal() const { return journal_; }
  [[nodiscard]] const model::Assignment& assignment() const { return assignment_; }

 private:
  void mark(std::string_view name, Timestamp at);
  void fault(const Facts& facts, std::string_view cause, std::string message, std::optional<std::int32_t> exit_code = {});
  void watch_processes(const Facts& facts, Step& step);
  void start(const Facts& facts, Step& step);
  void drive(const Facts& facts, Step& step);
  void drain(const Facts& facts, Step& step);

  model::Assignment assignment_;
  model::AgentStatus status_;
  Journal journal_;
  bool ray_asked_ = false;
  bool drain_term_sent_ = false;
  bool drain_kill_sent_ = false;
  bool finish_asked_ = false;
  std::optional<MonoTime> drain_since_;
  std::optional<MonoTime> stop_since_;
};

}  // namespace helio::node
