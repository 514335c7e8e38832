#pragma once
// A seeded world on virtual time: hosts, nodes with their agents (the real node::Machine against a simulated Ray), and an unreliable way
// between agents and daemon. It outlives daemons. Single thread; everything that happens follows from the seed.

#include "base/rng.h"
#include "node/machine.h"
#include "provider/fake/virtual_time.h"
#include "provider/provider.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace helio::provider {

/// The daemon's side of agents, as far as the world needs it.
class AgentPort {
 public:
  virtual ~AgentPort() = default;
  /// The agent's connection came up or went down. False: it is not let in.
  virtual bool connection(const NodeId& node, bool connected) = 0;
  /// An agent's report arrived. True: it is recorded.
  virtual bool status(const model::AgentStatus& status) = 0;
  /// Bytes of the node's logs up to `size` arrived. True: they are durable.
  virtual bool logs(const NodeId& node, std::int64_t size) = 0;
  /// What the node shall do now; empty when it has no business here.
  virtual std::optional<model::Assignment> assignment(const NodeId& node) = 0;
};

/// How often things go wrong; all are chances.
struct Trouble {
  double disconnect = 0.02;     ///< a message breaks its connection
  double doubled = 0.05;        ///< a message arrives twice
  double late = 0.05;           ///< a message takes seconds instead of milliseconds
  double ensure_fails = 0.02;   ///< a node cannot be made
  double ray_fails = 0.02;      ///< `ray start` ends before the node joined
  double post_unclear = 0.05;   ///< nobody knows whether the submission arrived
  double brain_restart = 0.01;  ///< an agent's brain starts again from its journal
};

/// What an attempt's entrypoint does.
struct Script {
  Duration run{5s};
  std::int32_t exit_code = 0;
  bool stubborn = false;  ///< uses its whole grace when it is stopped
  bool hangs = false;     ///< never ends by itself
};

/// Deliberate defects of the world itself, for checking that they are noticed.
struct WorldDefects {
  bool submit_twice = false;     ///< an unclear submission is repeated under another id
  bool forget_unsent = false;    ///< a report that was lost is taken for delivered
  bool sweep_nothing = false;    ///< orphans stay
  bool same_ports = false;       ///< ports that are taken are given again
  bool early_proof = false;      ///< a node is called dead when it is told to end
  bool double_capacity = false;  ///< hosts promise twice what they have
  bool no_leash = false;         ///< what a submitter has submitted outlives it
};

class World {
 public:
  World(VirtualTime& time, std::uint64_t seed, Trouble trouble, WorldDefects defects);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Decides what an attempt's entrypoint does. Set before the first node.
  void set_scripts(std::function<Script(const AttemptId&)> scripts) { scripts_ = std::move(scripts); }
  void add_host(model::Host host) { hosts_.push_back(std::move(host)); }

  // --- the daemon's side ---
  /// Agents dial in from now on; null: nobody answers. All connections of the former one break.
  void attach(AgentPort* port);
  /// As attach(null), if it is this one that agents talk to.
  void detach(const AgentPort* port) {
    if (port_ == port) attach(nullptr);
  }
  /// Hands a newer assignment to a connected agent.
  void push(const NodeId& node, const model::Assignment& assignment);

  // --- what a provider does; see FakeProvider ---
  Result<NodePlan> plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken);
  Result<void> ensure(const NodeSpec& spec);
  Result<void> remove(const NodeId& node);
  std::vector<NodeFact> list() const;
  std::vector<model::Host> capacity() const;
  std::vector<std::string> sweep(const std::vector<NodeId>& live);
  using Observer = Provider::Observer;
  std::uint64_t add_observer(Observer observer);
  void remove_observer(std::uint64_t id) { observers_.erase(id); }
  /// Last words of a dead agent and the size of its logs, while its folder is there.
  struct Remains {
    model::AgentStatus status;
    std::int64_t log_size = 0;
  };
  std::optional<Remains> remains(const NodeId& node) const;

  // --- faults ---
  enum class Blow { agent, raylet, gcs, ray_start, driver, out_of_memory };
  /// Hits one living node; false when there is none.
  bool strike(Blow blow);
  /// Cuts a living node's agent off for a while.
  bool partition(Duration length);
  /// All nodes of all hosts die.
  void reboot();

  // --- what really happened ---
  [[nodiscard]] const std::map<AttemptId, int>& entrypoint_starts() const { return starts_; }
  /// Breaches of what must never happen, in the order noticed.
  [[nodiscard]] const std::vector<std::string>& breaches() const { return breaches_; }
  /// Nodes whose folder or processes are still there.
  [[nodiscard]] std::vector<NodeId> present() const;
  [[nodiscard]] bool alive(const NodeId& node) const;
  /// Its agent's brain was started again: what it reports starts from its journal.
  [[nodiscard]] bool restarted(const NodeId& node) const { return restarted_.contains(node); }
  /// Its agent lives and is connected.
  [[nodiscard]] bool reachable(const NodeId& node) const;
  /// What the hosts really have.
  [[nodiscard]] const std::vector<model::Host>& hosts() const { return hosts_; }
  /// What the node's processes ever wrote to their logs.
  [[nodiscard]] std::int64_t log_written(const NodeId& node) const;
  [[nodiscard]] std::optional<MonoTime> driver_ended(const AttemptId& attempt) const;
  /// Its entrypoint runs now.
  [[nodiscard]] bool driver_runs(const AttemptId& attempt) const;

 private:
  struct Agent;
  struct Driver;
  struct Ray;

  Agent* find(const NodeId& node);
  [[nodiscard]] const Agent* find(const NodeId& node) const;
  /// The cluster that a node belongs to, or that a submitter submits to.
  Ray& ray_of(const Agent& agent);
  Driver& driver_of(const Agent& agent);
  /// Runs `task` on the agent after `delay`, unless it is dead by then.
  void later(const NodeId& node, Duration delay, std::function<void(Agent&)> task);
  Duration between(Duration low, Duration high);
  Duration latency();

  void step(Agent& agent);
  void act(Agent& agent, const node::Action& action);
  void start_ray(Agent& agent);
  void ray_up(Agent& agent);
  void submit(Agent& agent);
  void arrive(Agent& agent);
  void run_driver(Agent& agent);
  void end_driver(Agent& agent, const std::string& status, std::optional<std::int32_t> exit_code);
  /// Its process is gone, without a word to its record.
  void drop_driver(Ray& ray, const AttemptId& attempt);
  void end_ray(Agent& agent, std::int32_t exit_code);
  void fall(Agent& agent);
  void exit_agent(Agent& agent, std::string detail, std::optional<std::int32_t> exit_code, std::string cause);
  void spread(Ray& ray);
  void write_log(Agent& agent, std::int64_t bytes);

  void dial(const NodeId& node, Duration delay);
  void hang_up(Agent& agent);
  void send(Agent& agent);
  void resend_later(Agent& agent);
  void ship(Agent& agent);
  void restart_brain(Agent& agent);
  void tell(const NodeId& node, const model::ProviderFact& fact);
  void check_one_attempt(const NodeSpec& spec);

  VirtualTime& time_;
  SeededRng rng_;
  Trouble trouble_;
  WorldDefects defects_;
  std::function<Script(const AttemptId&)> scripts_;
  std::vector<model::Host> hosts_;
  AgentPort* port_ = nullptr;
  std::uint64_t port_epoch_ = 0;
  std::map<NodeId, std::unique_ptr<Agent>> agents_;
  std::map<ClusterId, std::unique_ptr<Ray>> rays_;
  std::map<std::uint64_t, Observer> observers_;
  std::uint64_t last_observer_ = 0;
  std::map<AttemptId, int> starts_;
  std::map<AttemptId, MonoTime> driver_ended_;
  std::map<NodeId, std::int64_t> log_written_;
  std::set<NodeId> restarted_;
  std::vector<std::string> breaches_;
};

}  // namespace helio::provider
