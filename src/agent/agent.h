#pragma once
// One node: executes what node::Machine decides, and tells it what can be seen.

#include "agent/client_server.h"
#include "agent/cluster_watch.h"
#include "agent/daemon_link.h"
#include "agent/exec.h"
#include "agent/leash.h"
#include "agent/log_pump.h"
#include "agent/node_dir.h"
#include "agent/node_processes.h"
#include "node/machine.h"
#include "proc/process.h"
#include "ray/start_command.h"
#include "rt/event_loop.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace helio::agent {

class Agent {
 public:
  Agent(NodeFiles files, bool first_of_namespace);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Acts until the node is over; gives the exit code. Call once.
  int run();
  /// The node shall be gone (SIGTERM). Any thread.
  void terminate();

 private:
  enum class Watched { raylet, gcs, dashboard, driver };

  // --- brain: everything below runs on brain_ unless it says otherwise
  void wake();
  /// True when the kernel has killed more for the memory limit.
  bool look_for_oom();
  void refresh();
  void after_step();
  void publish();
  void note_marks();

  void execute(const node::action::StartRay&);
  void execute(const node::action::StopDriver&);
  void execute(const node::action::AnnounceSubmit&);
  void execute(const node::action::SubmitDriver&);
  void execute(const node::action::SignalRay&);
  void execute(const node::action::DrainNode&);
  void execute(const node::action::KillAll&);
  void execute(const node::action::WatchCluster&);
  void execute(const node::action::WatchGcsPort&);
  void execute(const node::action::FinishStreams&);
  void execute(const node::action::Exit&);

  Result<void> make_shared_folders();
  /// The driver of a submitter, on its leash.
  Result<void> take_on_leash(model::DriverSpec& driver);
  void ray_start_ended(proc::ExitStatus status);
  void find_children();
  void find_driver();
  void watch_process(Watched what, pid_t pid);
  [[nodiscard]] std::optional<node::ProcessFact>& fact_of(Watched what);
  void look_at_gcs_port();
  void cluster_seen(ClusterView view);
  void submit_answered(const PostResult& result);
  void write_journal_if_changed();
  [[nodiscard]] bool going_down() const;
  [[nodiscard]] std::string start_log_tail() const;
  void leave(int code);
  void leave_when_recorded();
  void event(std::string_view what, const std::string& text);

  void daemon_connected();
  void run_exec(ExecRequest request);
  LinkHandlers link_handlers();
  ClientServerOptions client_server_options();

  // --- measuring, on meter_
  void measure();
  void watch_memory();

  NodeFiles files_;
  const bool first_;
  const NodeProcesses processes_;
  std::string work_dir_;
  std::string event_file_;
  std::string start_log_;
  std::optional<ray::StartCommand> command_;
  std::string command_error_;

  rt::EventLoop loop_;
  std::unique_ptr<proc::Reaper> reaper_;
  node::Machine machine_;
  node::Facts facts_;
  Timestamp oom_looked_ = SystemClock::instance().now();
  node::Journal written_journal_;
  std::shared_ptr<proc::Process> ray_start_;
  std::map<NodeId, std::shared_ptr<proc::Process>> drains_;  ///< commands that ask Ray to drain a node
  std::map<Watched, std::shared_ptr<proc::Process>> watched_;
  std::map<std::string, std::string> node_of_ray_id_;
  Duration gcs_every_{0};
  Executor::TimerId gcs_timer_ = 0;
  Executor::TimerId again_timer_ = 0;
  bool children_complete_ = false;
  int driver_looks_ = 0;
  std::set<std::string, std::less<>> noted_marks_;
  bool noted_fault_ = false;
  bool terminating_ = false;
  std::optional<MonoTime> leaving_since_;
  int exit_code_ = 0;
  std::int64_t published_ = 0;
  std::int64_t recorded_ = 0;
  std::atomic<std::int64_t> generation_{0};
  UsageMeter usage_;
  MonoTime disk_due_;
  MonoTime usage_due_;

  std::mutex done_mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;

  // Threads last: they end first.
  std::unique_ptr<DaemonLink> link_;
  std::unique_ptr<Execs> execs_;
  std::unique_ptr<ClientServer> client_server_;  ///< brain's
  std::unique_ptr<LogPump> pump_;
  std::unique_ptr<ClusterWatch> cluster_;
  std::unique_ptr<Leash> leash_;  ///< brain's; of a submitter, from its submission on
  rt::SerialExecutor meter_{"helio-meter"};
  rt::SerialExecutor http_{"helio-http"};
  rt::SerialExecutor brain_{"helio-brain"};
};

/// What is shipped besides Ray's own logs.
std::vector<LocalLog> local_logs(const std::string& work_dir);
ShipperOptions shipper_options(const model::Assignment& assignment);

/// Ships what an ended agent has left on disk, then leaves. Nothing is started. Gives the exit code: 0 when all is shipped.
int harvest(NodeFiles files);

}  // namespace helio::agent
