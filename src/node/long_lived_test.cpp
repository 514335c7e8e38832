#include "node/machine_for_test.h"

namespace helio::node {
namespace {

/// The head of a long-lived cluster: it has no driver, and its use is watched.
World ready_cluster() {
  World head(model::Role::head);
  head.assignment.driver.reset();
  head.assignment.watch_idle.d = 10s;
  ++head.assignment.generation;
  EXPECT_TRUE(head.machine.assign(head.assignment));
  head.bring_up();
  head.step();
  return head;
}

TEST(LongLived, IsReadyWithoutADriverAndTellsSinceWhenNothingRuns) {
  World head = ready_cluster();
  EXPECT_EQ(head.machine.status().reached, Phase::checked);
  EXPECT_EQ(head.machine.status().step, "ready");
  EXPECT_FALSE(head.machine.status().idle_since) << "nobody has looked yet";
  head.facts.cluster_busy = false;
  const Timestamp idle_from = head.facts.now;
  head.step();
  EXPECT_EQ(head.machine.status().idle_since, idle_from);
  head.advance(30s);
  head.step();
  EXPECT_EQ(head.machine.status().idle_since, idle_from) << "still since then";
  head.facts.cluster_busy = true;
  head.step();
  EXPECT_FALSE(head.machine.status().idle_since);
}

TEST(LongLived, AJobBetweenTwoLooksCountsAndDoubtIsNoIdleness) {
  World head = ready_cluster();
  head.facts.cluster_busy = false;
  head.step();
  head.advance(60s);
  head.facts.cluster_last_end = head.facts.now - 5s;
  head.step();
  EXPECT_EQ(head.machine.status().idle_since, head.facts.now - 5s) << "it ended five seconds ago";
  head.facts.cluster_busy.reset();
  head.step();
  EXPECT_FALSE(head.machine.status().idle_since) << "the dashboard did not answer";
}

TEST(LongLived, DrainsThoseThatLeaveOnceAndTakesTheirEndForNoLoss) {
  World head = ready_cluster();
  head.assignment.leaving_nodes = {NodeId("a-1-w2")};
  ++head.assignment.generation;
  ASSERT_TRUE(head.machine.assign(head.assignment));
  head.facts.rows_alive = {NodeId("a-1-h"), NodeId("a-1-w1"), NodeId("a-1-w2")};
  EXPECT_EQ(head.step(), std::vector<std::string>{"drain a-1-w2"});
  EXPECT_TRUE(head.step().empty());
  head.facts.rows_alive.pop_back();
  head.facts.rows_dead = {NodeId("a-1-w2")};
  head.step();
  head.advance(10s);
  EXPECT_FALSE(head.machine.status().fault);
  head.facts.rows_alive.pop_back();
  head.facts.rows_dead.emplace_back("a-1-w1");
  head.step();
  head.advance(2s);
  ASSERT_TRUE(head.machine.status().fault);
  EXPECT_EQ(head.machine.status().fault->cause, model::cause::kGcsRowDead) << "the other one was not told to leave";
}

TEST(LongLived, AWorkerThatLeavesGoesWithItsRayletAndShipsItsLogs) {
  World worker(model::Role::worker);
  worker.facts.gcs_port_open = true;
  worker.step();
  worker.facts.raylet = up();
  worker.facts.processes_left = true;
  worker.step();
  worker.assignment.leaving = true;
  ++worker.assignment.generation;
  ASSERT_TRUE(worker.machine.assign(worker.assignment));
  EXPECT_TRUE(worker.step().empty()) << "its work goes on";
  worker.facts.raylet = down(0);
  EXPECT_EQ(worker.step(), std::vector<std::string>{"signal 15"});
  EXPECT_FALSE(worker.machine.status().fault);
  worker.facts.ray_start = down(1);
  worker.facts.processes_left = false;
  EXPECT_EQ(worker.step(), std::vector<std::string>{"finish"});
  worker.facts.logs_shipped = true;
  EXPECT_EQ(worker.step(), std::vector<std::string>{"exit 0"});
}

TEST(LongLived, IsWatchedForUseWhileMoreNodesAreToCome) {
  World head = ready_cluster();
  head.facts.cluster_busy = false;
  head.step();
  ASSERT_TRUE(head.machine.status().idle_since);
  head.assignment.nodes = 9;
  ++head.assignment.generation;
  ASSERT_TRUE(head.machine.assign(head.assignment));
  head.facts.cluster_busy = true;
  head.step();
  EXPECT_FALSE(head.machine.status().idle_since) << "somebody came meanwhile";
}

/// For a driver in a cluster that others look after.
World submitter() {
  World out(model::Role::head);
  out.assignment.submitter = true;
  ++out.assignment.generation;
  EXPECT_TRUE(out.machine.assign(out.assignment));
  return out;
}

TEST(Submitter, StartsNoRayAndSubmitsOnceTheClusterAnswers) {
  World node = submitter();
  EXPECT_TRUE(node.step().empty());
  EXPECT_EQ(node.machine.status().step, "waiting for the cluster to answer");
  node.facts.api_up = node.facts.head_agent_up = true;
  EXPECT_EQ(node.step(), (std::vector<std::string>{"announce", "submit"})) << "without a node of its own to wait for";
  node.facts.post = Facts::Post::accepted;
  node.step();
  node.facts.driver_known = true;
  node.facts.driver_ray_status = "RUNNING";
  node.step();
  EXPECT_EQ(node.machine.status().driver.phase, model::DriverPhase::running);
}

TEST(Submitter, TakesItsDriverWithItAndShipsWhatThatWrote) {
  World node = submitter();
  node.facts.api_up = node.facts.head_agent_up = true;
  node.step();
  node.facts.post = Facts::Post::accepted;
  node.facts.driver_known = true;
  node.facts.driver_ray_status = "RUNNING";
  node.facts.processes_left = true;  // its driver, on the leash
  node.step();
  node.assignment.phase = Phase::drained;
  ++node.assignment.generation;
  ASSERT_TRUE(node.machine.assign(node.assignment));
  EXPECT_EQ(node.step(), std::vector<std::string>{"kill_all"});
  node.facts.processes_left = false;
  EXPECT_EQ(node.step(), std::vector<std::string>{"finish"});
  node.facts.logs_shipped = true;
  EXPECT_EQ(node.step(), std::vector<std::string>{"exit 0"});
}

}  // namespace
}  // namespace helio::node
