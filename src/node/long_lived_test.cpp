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

}  // namespace
}  // namespace helio::node
