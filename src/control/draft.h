#pragma once
// A step's working copy of one aggregate. Controllers change it and ask for provider calls; what has changed becomes one transaction, so
// a crash leaves all of a step or nothing of it.

#include "base/clock.h"
#include "control/deadlines.h"
#include "control/plan.h"
#include "control/view.h"
#include "model/settings.h"
#include "store/store.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace helio::control {

/// A row with the event that explains its change; the last word on it stays.
template <class T>
struct Tracked {
  T value;
  std::optional<store::Event> event;

  T* operator->() { return &value; }
  const T* operator->() const { return &value; }
};

using Resource = std::variant<model::Job, model::Attempt, model::Cluster, model::Node, model::Host, StoredPlan>;

struct Put {
  Resource resource;
  store::Event event;
};

/// What is written at once, as data.
struct Transaction {
  std::vector<Put> puts;
  std::vector<std::pair<std::string, std::string>> secrets;  ///< key, sealed bytes
  std::vector<std::string> forget_secrets;                   ///< prefixes
  std::vector<NodeId> remove_plans;                          ///< whose node is gone

  [[nodiscard]] bool empty() const { return puts.empty() && secrets.empty() && forget_secrets.empty() && remove_plans.empty(); }
};

/// Something for the provider, done after the transaction is durable. All are idempotent.
struct Call {
  enum class Kind {
    ensure,
    end,      ///< end it by force; what its disk holds is taken over before
    salvage,  ///< take over what a dead node's disk holds
    wipe,     ///< its folder, cgroup and ports, after its death
  };
  Kind kind = Kind::ensure;
  NodeId node;
  JobId job;
};

/// What this daemon has already asked the provider for; lost with the daemon, and repaired by asking again.
struct NodeMemory {
  bool ensured = false;
  bool salvaged = false;
  std::optional<MonoTime> removed_at;
};

struct Moment {
  Timestamp wall;
  MonoTime mono;
};

class Draft {
 public:
  Draft(const Aggregate& aggregate, JobId id, Moment moment, Deadlines& deadlines, const std::map<NodeId, NodeMemory>& memory);

  std::optional<Tracked<model::Job>> job;
  std::optional<Tracked<model::Attempt>> attempt;
  std::optional<Tracked<model::Cluster>> cluster;
  std::vector<Tracked<model::Node>> nodes;  ///< in order of index
  std::vector<Call> calls;
  const Aggregate* host = nullptr;  ///< of a job in a long-lived cluster: the cluster, as long as it has not ended
  bool expects_guests = false;      ///< jobs that have not ended run in this long-lived cluster, or will
  bool has_guests = false;          ///< jobs that run in this long-lived cluster have live attempts

  [[nodiscard]] const JobId& id() const { return id_; }
  [[nodiscard]] Timestamp now() const { return moment_.wall; }
  [[nodiscard]] MonoTime mono() const { return moment_.mono; }
  [[nodiscard]] NodeMemory memory(const NodeId& node) const;

  // State changes; each refuses (soft check, false) what the table does not allow, and does nothing when the state is the same.
  bool go(model::JobState to, std::string reason);
  bool go(model::AttemptState to, std::string reason);
  bool go(model::ClusterState to, std::string reason);
  bool go(Tracked<model::Node>& node, model::NodeState to, std::string reason);
  /// Says why something waits, when that has changed.
  void explain(Tracked<model::Job>& row, std::string reason);
  void explain(Tracked<model::Attempt>& row, std::string reason);
  void explain(Tracked<model::Node>& row, std::string reason);
  /// Marks a row as changed without a new state.
  template <class T>
  void touch(Tracked<T>& row, std::string type, std::string message) {
    if (!row.event) row.event = event(std::move(type), std::move(message));
  }

  /// True when `limit` since `since` has passed; otherwise the step is repeated then. A deadline is known by its name.
  bool passed(const std::string& name, Timestamp since, Duration limit);
  void forget_deadline(const std::string& name) { deadlines_.forget(id_.value, name); }
  void wake_in(Duration delay);
  [[nodiscard]] std::optional<Duration> wake() const { return wake_; }

  void forget_secrets(std::string prefix) { forget_.push_back(std::move(prefix)); }
  void remove_plan(const NodeId& node) { plans_.push_back(node); }
  void call(Call::Kind kind, const NodeId& node) { calls.push_back({kind, node, id_}); }

  /// Adds a mark unless it is there. True when it is new.
  bool mark(std::string_view name, Timestamp at);
  [[nodiscard]] std::optional<Timestamp> marked(std::string_view name) const;

  /// All that has changed.
  [[nodiscard]] Transaction transaction() const;

 private:
  [[nodiscard]] store::Event event(std::string type, std::string message) const;

  JobId id_;
  Moment moment_;
  Deadlines& deadlines_;
  const std::map<NodeId, NodeMemory>& memory_;
  std::optional<Duration> wake_;
  std::vector<std::string> forget_;
  std::vector<NodeId> plans_;
};

/// An event of control about `job`.
store::Event control_event(Timestamp at, const JobId& job, std::string type, std::string message);

}  // namespace helio::control
