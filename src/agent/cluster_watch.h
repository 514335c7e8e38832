#pragma once
// Asks the head's own cluster, or the one that a submitter is sent to: does it answer, who is in it, how is the driver. Blocking HTTP on a
// thread of its own.

#include "base/executor.h"
#include "model/agent_protocol.h"
#include "node/machine.h"
#include "ray/activity_client.h"
#include "ray/jobs_client.h"
#include "ray/nodes_client.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace helio::agent {

/// What one round of questions has found out; what was not asked or not answered is empty.
struct ClusterView {
  std::optional<bool> api_up;
  std::optional<bool> head_agent_up;
  std::optional<std::vector<ray::NodeRow>> rows;
  bool activity_asked = false;
  std::optional<ray::Activity> activity;
  bool driver_absent = false;  ///< the cluster says that it has no such job
  std::optional<ray::JobRecord> driver;
};

struct PostResult {
  node::Facts::Post post = node::Facts::Post::unclear;
  bool final = false;
  std::string error;
};

/// All methods run on the executor that is given, which may block; results are handed over there, too.
class ClusterWatch {
 public:
  ClusterWatch(Executor& http, model::Assignment assignment, std::function<void(ClusterView)> on_view,
               std::function<void(PostResult)> on_post);

  /// Asks this often from now on; zero: no more.
  void set_period(Duration every);
  /// Asks now, out of turn.
  void poke();
  /// Whether to ask for the driver's record.
  void follow_driver() { follow_driver_ = true; }
  /// Puts the packages, then POSTs the entrypoint, once.
  void submit(const model::DriverSpec& driver);
  /// Repeats itself until the cluster has answered.
  void stop_driver();
  /// Nothing is asked after this.
  void close();

 private:
  void ask();
  void schedule();
  bool open();
  void ask_for_activity(MonoTime now, ClusterView& view);
  Result<void> put_packages(const model::DriverSpec& driver, ray::SubmitRequest& request);

  Executor& http_;
  model::Assignment assignment_;
  std::function<void(ClusterView)> on_view_;
  std::function<void(PostResult)> on_post_;
  std::unique_ptr<ray::JobsClient> jobs_;
  std::unique_ptr<ray::NodesClient> nodes_;
  std::unique_ptr<ray::AgentClient> agent_;
  std::unique_ptr<ray::ActivityClient> activity_;
  Duration every_{0};
  Executor::TimerId timer_ = 0;
  bool closed_ = false;
  bool follow_driver_ = false;
  bool api_up_ = false;
  bool head_agent_up_ = false;
  std::size_t alive_ = 0;
  std::optional<MonoTime> rows_at_;
  std::optional<MonoTime> activity_at_;
};

}  // namespace helio::agent
