#pragma once
// Inside provider/local. What is known of each node lives in one table: changed on one thread of its own (`work_`), read from any under
// `mutex_`. Files of ended nodes are wiped on another thread, so that a large tree delays no start.

#include "provider/local/agent_store.h"
#include "provider/local/launch.h"
#include "provider/local/local_provider.h"
#include "provider/local/places.h"

#include <map>
#include <mutex>
#include <set>

namespace helio::provider {

class LocalProvider::Impl {
 public:
  Impl(rt::EventLoop& loop, const Clock& clock, model::Home home, model::PoolSettings settings, std::string agent, LocalOptions options);
  ~Impl();

  Result<NodePlan> plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken);
  Result<void> ensure(const NodeSpec& spec);
  Result<void> remove(const NodeId& node, Grace grace);
  Result<std::vector<NodeFact>> list();
  Result<std::vector<model::Host>> capacity();
  void observe(Observer observer);
  std::optional<model::AgentStatus> final_status(const NodeId& node);
  Result<std::vector<std::string>> sweep(const std::vector<NodeId>& live);

 private:
  enum class Stage {
    requested,  ///< known, nothing was started
    running,    ///< its agent is watched
    settling,   ///< its agent has ended; proving that all of it has, and saving its logs
    ended,      ///< fact `ended` is out
    wiping,
  };

  struct Entry {
    NodeId id;
    local::NodeFolder folder;
    local::LaunchRecord launch;
    Stage stage = Stage::requested;
    model::ProviderFact fact;
    std::shared_ptr<proc::Process> process;
    std::optional<proc::ExitStatus> exit;  ///< known when it was our child
    bool foreign = false;                  ///< its place belongs to another node: nothing there is ours to touch
    bool clean = false;                    ///< it left its final status and was not killed
    bool harvested = false;                ///< or not worth it
    bool harvesting = false;               ///< the harvester runs
    std::optional<Grace> removal;
    std::optional<model::AgentStatus> final;
    std::optional<MonoTime> asked;  ///< by ensure() of this process
    int attempts = 0;               ///< of what is being retried
  };
  using EntryPtr = std::shared_ptr<Entry>;

  // take_over.cpp: what an earlier daemon left
  void take_over();
  void take_over_folder(const std::string& path);
  void retry_adopt(const EntryPtr& entry);
  /// Watches the agent that holds the lock, or settles the node when there is none.
  void adopt(const EntryPtr& entry);

  // launch_node.cpp
  void do_ensure(const NodeSpec& spec);
  void update(const EntryPtr& entry, const NodeSpec& spec);
  void launch(const EntryPtr& entry, const NodeSpec& spec);
  [[nodiscard]] bool place_is_taken(const EntryPtr& entry);
  Result<void> write_files(const EntryPtr& entry, const NodeSpec& spec);
  Result<void> make_session(const EntryPtr& entry);
  [[nodiscard]] proc::CgroupLimits limits_of(const model::Resources& resources) const;
  [[nodiscard]] proc::IsolatedOptions start_options(const EntryPtr& entry, bool harvest);
  Result<void> start_agent(const EntryPtr& entry);

  // end_node.cpp
  void do_remove(const NodeId& node, Grace grace);
  void on_exit(const NodeId& node, std::optional<proc::ExitStatus> status);
  /// Kills what is left of the node. True when its death is proven.
  bool prove_death(const EntryPtr& entry);
  void settle(const EntryPtr& entry);
  model::ProviderFact judge(const EntryPtr& entry);
  [[nodiscard]] bool worth_harvesting(const EntryPtr& entry) const;
  void harvest(const EntryPtr& entry);
  void conclude(const EntryPtr& entry);
  void wipe(const EntryPtr& entry);
  void wiped(const EntryPtr& entry, const Result<void>& result);

  // sweep.cpp
  void sweep_processes(const std::set<NodeId>& live, std::vector<std::string>& found);
  void sweep_cgroups(std::vector<std::string>& found);
  void sweep_sessions(std::vector<std::string>& found);
  void sweep_folders(std::vector<std::string>& found);

  EntryPtr find(const NodeId& node);
  [[nodiscard]] std::vector<EntryPtr> entries();
  void set_stage(const EntryPtr& entry, Stage stage);
  void set_stage(const EntryPtr& entry, Stage stage, model::ProviderState state, std::string detail);
  /// Sets the node's fact and tells the observer.
  void emit(const EntryPtr& entry, model::ProviderState state, std::string detail);
  void emit(const EntryPtr& entry, model::ProviderFact fact);
  [[nodiscard]] std::string cgroup_name(const EntryPtr& entry);

  rt::EventLoop& loop_;
  const Clock& clock_;
  local::Places places_;
  model::PoolSettings settings_;
  local::AgentStore agents_;
  proc::Isolation isolation_;
  std::unique_ptr<proc::CgroupDriver> cgroups_;
  std::string boot_id_;
  Duration harvest_limit_;
  Duration sweep_spares_;

  std::mutex mutex_;
  std::map<NodeId, EntryPtr> entries_;
  Observer observer_;
  std::map<std::int32_t, std::int32_t> head_ports_;  ///< slot to port base of the last head planned there
  std::optional<std::vector<model::Gpu>> gpus_;

  /// Callbacks of the loop may come after our end; they post to `work_` through this.
  struct Gate {
    std::mutex mutex;
    Impl* impl = nullptr;
  };
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  /// Runs `fn(impl)` on `work_`, unless the provider is gone by then.
  static void pass(const std::shared_ptr<Gate>& gate, std::move_only_function<void(Impl&)> fn);

  rt::SerialExecutor work_{"local-nodes"};
  rt::SerialExecutor wiper_{"local-wiper"};
};

}  // namespace helio::provider
