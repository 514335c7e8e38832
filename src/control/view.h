#pragma once
// What controllers look at: the live rows, decoded once, kept current from the change feed. A refresh costs what changed since the last
// one, never what is stored. Single thread.

#include "model/kinds.h"
#include "sched/sched.h"
#include "store/store.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace helio::control {

/// A job that has not ended, its live attempt, and the cluster that is not gone, which may outlive both when it is retained.
struct Aggregate {
  std::optional<model::Job> job;
  std::optional<model::Attempt> attempt;
  std::optional<model::Cluster> cluster;
  std::map<std::int32_t, model::Node> nodes;  ///< by index; those that are gone stay as long as their cluster
};

class View {
 public:
  /// FIFO order of the queue.
  struct QueueKey {
    std::int32_t priority_below_top = 0;
    Timestamp since;
    JobId job;
    auto operator<=>(const QueueKey&) const = default;
  };
  struct Changes {
    std::set<JobId> jobs;           ///< whose aggregate changed, or that of the cluster they run in or of what runs in them
    bool pool = false;              ///< the hosts, what they hold or what jobs may ask for changed
    std::optional<QueueKey> queue;  ///< first place of the queue that changed
    bool resynced = false;          ///< everything was loaded anew
  };

  static QueueKey queue_key(const model::Job& job);

  /// Brings the view up to date. The first call, and one that comes too late for the event log, load everything.
  Result<Changes> refresh(store::Store& store);

  [[nodiscard]] const std::map<JobId, Aggregate>& aggregates() const { return aggregates_; }
  [[nodiscard]] const Aggregate* find(const JobId& job) const;
  /// Jobs that wait for the pool, and clusters that grow. Those that wait for a long-lived cluster are not among them.
  [[nodiscard]] const std::set<QueueKey>& queue() const { return queue_; }
  /// A job that has not ended runs in this long-lived cluster, or will.
  [[nodiscard]] bool expects_guests(const JobId& cluster) const { return guests_.contains(cluster); }
  /// A job that runs in this long-lived cluster has a live attempt.
  [[nodiscard]] bool has_guests(const JobId& cluster) const;
  [[nodiscard]] const std::map<std::string, model::Flavor>& flavors() const { return flavors_; }
  [[nodiscard]] const std::map<std::string, model::Image>& images() const { return images_; }
  [[nodiscard]] const std::map<HostId, model::Host>& hosts() const { return hosts_; }
  [[nodiscard]] std::int64_t revision() const { return revision_; }

  /// Hosts with what the nodes that are not gone hold of them.
  [[nodiscard]] std::vector<sched::HostView> host_views() const;
  /// Slots of clusters, and first ports of nodes, that are in use.
  [[nodiscard]] std::set<std::int32_t> slots() const;
  [[nodiscard]] std::vector<std::int32_t> port_bases() const;
  /// Ids of all nodes that are not gone.
  [[nodiscard]] std::vector<NodeId> live_nodes() const;

 private:
  struct Touched {
    std::set<std::string> jobs, attempts, clusters, nodes, flavors, images, hosts;
  };

  Result<void> load(store::ReadTx& tx, Changes& changes);
  Result<void> apply(store::ReadTx& tx, const Touched& touched, Changes& changes);
  void put(model::Job job, Changes& changes);
  void put(model::Attempt attempt, Changes& changes);
  void put(model::Cluster cluster, Changes& changes);
  void put(model::Node node, Changes& changes);
  void remove_job(const JobId& id, Changes& changes);
  void remove_cluster(const ClusterId& id, Changes& changes);
  void drop_if_over(const JobId& id);
  void forget_guest(const JobId& cluster, const JobId& guest);
  /// What changes a long-lived cluster matters to the jobs in it.
  void add_guests(Changes& changes) const;
  /// Puts the job where it belongs in the queue, or takes it out.
  void requeue(const std::optional<model::Job>& before, const model::Job* now, Changes& changes);
  /// The cluster of an aggregate is gone, and its nodes with it.
  void forget_cluster(const JobId& id, Changes& changes);
  /// Calls `visit` with each node that is not gone.
  template <class Visit>
  void each_live_node(Visit&& visit) const;

  std::map<JobId, Aggregate> aggregates_;
  /// The aggregates that have a cluster: as many as the pool can hold, while thousands may wait.
  std::map<ClusterId, JobId> clusters_;
  std::map<JobId, std::set<JobId>> guests_;  ///< long-lived cluster -> jobs in it that have not ended
  std::set<QueueKey> queue_;
  std::map<std::string, model::Flavor> flavors_;
  std::map<std::string, model::Image> images_;
  std::map<HostId, model::Host> hosts_;
  std::int64_t revision_ = -1;
};

}  // namespace helio::control
