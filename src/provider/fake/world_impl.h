#pragma once
// Insides of World, shared by its two source files.

#include "provider/fake/world.h"

namespace helio::provider {

/// One node: its agent, and what its agent sees.
struct World::Agent {
  Agent(NodeSpec made, std::uint64_t number) : spec(std::move(made)), life(number), machine(spec.assignment.node, "sim", {}) {}

  NodeSpec spec;
  std::uint64_t life;
  node::Machine machine;
  node::Journal journal;
  node::Facts facts;
  model::ProviderFact fact;
  bool alive = true;
  bool connected = false;
  bool frozen = false;     ///< told to end by the provider: writes no more logs
  bool finishing = false;  ///< all its files are closed
  bool reported = false;   ///< its loss of connection is on its way to the daemon
  std::int64_t written = 0;
  std::int64_t shipped = 0;
  std::int64_t recorded = 0;  ///< sequence of the last report that the daemon has confirmed
  std::int64_t sent = 0;
  bool shipping = false;
  bool resending = false;
  MonoTime away_until;
  std::optional<Executor::TimerId> again;

  [[nodiscard]] const NodeId& id() const { return spec.assignment.node; }
  [[nodiscard]] const AttemptId& attempt() const { return spec.assignment.attempt; }
  [[nodiscard]] bool head() const { return spec.assignment.role == model::Role::head; }
  [[nodiscard]] bool submitter() const { return spec.assignment.submitter; }
};

/// An entrypoint that was submitted to a cluster.
struct World::Driver {
  bool known = false;  ///< the submission arrived
  std::string status;
  std::optional<std::int32_t> exit_code;
  std::string message;
  bool first_line = false;
  std::uint64_t runs = 0;  ///< number of the process; 0 = none
};

/// One Ray cluster.
struct World::Ray {
  NodeId head;
  bool gcs = false;
  bool api = false;
  bool agent = false;
  std::set<NodeId> alive;
  std::set<NodeId> dead;
  bool visited = false;  ///< of a long-lived cluster: somebody works in it who is no job of ours
  std::map<AttemptId, Driver> drivers;
};

}  // namespace helio::provider
