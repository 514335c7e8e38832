#pragma once
// A node on virtual time.

#include "node/machine.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace helio::node {

using model::Phase;

inline std::string name_of(const Action& action) {
  struct Namer {
    std::string operator()(const action::StartRay&) const { return "start"; }
    std::string operator()(const action::StopDriver& a) const { return a.kill ? "kill_driver" : "stop_driver"; }
    std::string operator()(const action::AnnounceSubmit&) const { return "announce"; }
    std::string operator()(const action::SubmitDriver&) const { return "submit"; }
    std::string operator()(const action::SignalRay& a) const { return "signal " + std::to_string(a.signal); }
    std::string operator()(const action::DrainNode& a) const { return "drain " + a.node.value; }
    std::string operator()(const action::KillAll&) const { return "kill_all"; }
    std::string operator()(const action::WatchCluster&) const { return ""; }
    std::string operator()(const action::WatchGcsPort&) const { return ""; }
    std::string operator()(const action::FinishStreams&) const { return "finish"; }
    std::string operator()(const action::Exit& a) const { return "exit " + std::to_string(a.code); }
  };
  return std::visit(Namer{}, action);
}

inline ProcessFact up() { return {.running = true, .exit_code = {}}; }
inline ProcessFact down(std::optional<std::int32_t> code = {}) { return {.running = false, .exit_code = code}; }

/// A node on virtual time: holds facts, steps the machine, and collects what it does (but for watch rates).
class World {
 public:
  explicit World(model::Role role, Phase phase = Phase::driving, Journal journal = {})
      : machine(NodeId(role == model::Role::head ? "a-1-h" : "a-1-w1"), "test", journal) {
    facts.now = {1'700'000'000'000'000};
    facts.mono = {1'000'000};
    assignment.node = NodeId(role == model::Role::head ? "a-1-h" : "a-1-w1");
    assignment.attempt = AttemptId("a-1");
    assignment.generation = 1;
    assignment.role = role;
    assignment.phase = phase;
    assignment.nodes = 3;
    assignment.prefix = "/image";
    assignment.head_address = "127.9.0.2";
    assignment.head_port_base = 12000;
    assignment.stop_grace = {30s};
    if (role == model::Role::head) {
      assignment.driver = model::DriverSpec{};
      assignment.driver->submission_id = "a-1";
      assignment.driver->entrypoint = "python train.py";
    }
    EXPECT_TRUE(machine.assign(assignment));
  }

  /// Steps until the machine rests; returns what it did.
  std::vector<std::string> step() {
    std::vector<std::string> done;
    for (int i = 0; i < 20; ++i) {
      const Step result = machine.step(facts);
      again = result.again;
      for (const Action& action : result.actions) {
        if (std::holds_alternative<action::StartRay>(action)) facts.ray_start = up();
        if (std::holds_alternative<action::SubmitDriver>(action)) {
          facts.post = Facts::Post::pending;
          facts.driver_absent = false;
        }
        if (std::string name = name_of(action); !name.empty()) done.push_back(std::move(name));
      }
      if (!again || again->count() > 0) break;
    }
    return done;
  }
  std::vector<std::string> advance(Duration by) {
    facts.now = facts.now + by;
    facts.mono = facts.mono + by;
    return step();
  }
  void desire(Phase phase) {
    ++assignment.generation;
    assignment.phase = phase;
    EXPECT_TRUE(machine.assign(assignment));
  }
  void ask_stop() {
    ++assignment.generation;
    assignment.stop_driver = true;
    EXPECT_TRUE(machine.assign(assignment));
  }

  /// Head: Ray is up and all nodes are in. Worker: its raylet runs.
  void bring_up() {
    facts.gcs_port_open = true;
    step();
    facts.raylet = up();
    if (assignment.role == model::Role::head) {
      facts.gcs = facts.dashboard = up();
      facts.api_up = facts.head_agent_up = true;
      facts.rows_alive = {NodeId("a-1-h"), NodeId("a-1-w1"), NodeId("a-1-w2")};
    }
  }
  void run_driver() {
    bring_up();
    step();
    facts.post = Facts::Post::accepted;
    facts.driver_known = true;
    facts.driver_ray_status = "RUNNING";
    step();
    ASSERT_EQ(machine.status().driver.phase, model::DriverPhase::running);
  }
  void end_driver(const std::string& status, std::optional<std::int32_t> code, const std::string& type = "", const std::string& text = "") {
    facts.driver_ray_status = status;
    facts.driver_exit_code = code;
    facts.driver_error_type = type;
    facts.driver_message = text;
    facts.driver_log_complete = true;
    step();
  }
  [[nodiscard]] std::string fault() const { return machine.status().fault ? machine.status().fault->cause : ""; }
  [[nodiscard]] const model::AgentStatus& status() const { return machine.status(); }
  [[nodiscard]] std::vector<std::string> marks() const {
    std::vector<std::string> names;
    for (const auto& mark : machine.status().marks) names.push_back(mark.name);
    return names;
  }

  Facts facts;
  model::Assignment assignment;
  Machine machine;
  std::optional<Duration> again;
};

}  // namespace helio::node
