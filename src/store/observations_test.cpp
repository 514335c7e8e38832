#include "store/observations.h"

#include "base/clock.h"
#include "store/sql/sqlite/sqlite_store.h"
#include "store/test_support.h"

#include <gtest/gtest.h>

#include <array>

namespace helio::store {
namespace {

using model::NodeState;
using model::Phase;
using model::ProviderState;
using test::code;
using test::ok;

const NodeId kNode("j-1-1-h");

class ObservationsTest : public testing::Test {
 protected:
  void SetUp() override { add(NodeState::requested); }
  void add(NodeState state) {
    store_ = *open_sqlite({.path = ":memory:", .clock = clock_, .inline_mode = true});
    model::Node node;
    node.id = kNode;
    node.job = JobId("j-1");
    node.state = state;
    node.reason = "made";
    ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.put(node, test::event("node.made")); })));
  }
  model::Node node() { return *get<model::Node>(*store_, kNode.value); }
  Accepted status(std::int64_t sequence, Phase reached, std::string step = "") {
    model::AgentStatus status;
    status.node = kNode;
    status.sequence = sequence;
    status.reached = reached;
    status.step = std::move(step);
    return report(status);
  }
  Accepted report(const model::AgentStatus& status) {
    const auto done = record_status(*store_, status, clock_.now());
    EXPECT_TRUE(ok(done));
    return done.value_or(Accepted::stale);
  }
  Accepted connection(bool open) { return *record_connection(*store_, kNode, open, clock_.now()); }
  Accepted fact(ProviderState state, std::string detail = "") {
    model::ProviderFact fact;
    fact.state = state;
    fact.detail = std::move(detail);
    return *record_fact(*store_, kNode, fact, clock_.now());
  }
  Event last_event() {
    Event out;
    EXPECT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
      HELIO_TRY(all, tx.events({}));
      out = all.back();
      return {};
    })));
    return out;
  }

  ManualClock clock_;
  std::unique_ptr<Store> store_;
};

TEST_F(ObservationsTest, ANodeFollowsWhatIsReported) {
  EXPECT_EQ(fact(ProviderState::running), Accepted::yes);
  EXPECT_EQ(node().state, NodeState::launched);
  clock_.advance(1s);
  EXPECT_EQ(connection(true), Accepted::yes);
  EXPECT_EQ(node().state, NodeState::connected);
  EXPECT_EQ(node().state_since, clock_.now());
  EXPECT_TRUE(node().connected);
  status(1, Phase::idle, "waiting for GCS");
  EXPECT_EQ(node().state, NodeState::connected);
  EXPECT_EQ(node().reason, "waiting for GCS");
  status(2, Phase::joined);
  EXPECT_EQ(node().state, NodeState::joined);
  status(3, Phase::checked);
  EXPECT_EQ(node().state, NodeState::checked);
  status(4, Phase::driving);
  EXPECT_EQ(node().state, NodeState::serving);
  status(5, Phase::drained);
  EXPECT_EQ(node().state, NodeState::draining);
  status(6, Phase::gone);
  EXPECT_EQ(node().state, NodeState::draining) << "the agent's word proves no death";
  EXPECT_EQ(fact(ProviderState::ended, "exit 0"), Accepted::yes);
  EXPECT_EQ(node().fact.detail, "exit 0");
  EXPECT_TRUE(node().fact.at);
}

TEST_F(ObservationsTest, ReportsInAnyOrderNeverGoBack) {
  status(4, Phase::driving);
  const model::Node before = node();
  EXPECT_EQ(before.state, NodeState::serving);
  EXPECT_EQ(status(4, Phase::joined), Accepted::stale);
  EXPECT_EQ(status(3, Phase::drained), Accepted::stale);
  EXPECT_EQ(fact(ProviderState::running), Accepted::yes);
  EXPECT_EQ(connection(true), Accepted::yes);
  EXPECT_EQ(status(5, Phase::joined), Accepted::yes);
  EXPECT_EQ(node().state, NodeState::serving);
  EXPECT_EQ(node().status.sequence, 5);
}

TEST_F(ObservationsTest, EventsNameWhoSaidWhat) {
  status(1, Phase::joined, "joined the cluster");
  Event event = last_event();
  EXPECT_EQ(event.type, "node.status");
  EXPECT_EQ(event.actor, "agent");
  EXPECT_EQ(event.job, "j-1");
  EXPECT_EQ(event.message, "joined the cluster");
  EXPECT_EQ(json::dump(event.data), R"({"from":"requested","state":"joined","sequence":1})");
  connection(true);
  EXPECT_EQ(last_event().type, "node.connection");
  fact(ProviderState::ended, "signal 9");
  event = last_event();
  EXPECT_EQ(event.type, "node.fact");
  EXPECT_EQ(event.actor, "provider");
  EXPECT_EQ(event.message, "provider: ended (signal 9)");
}

TEST_F(ObservationsTest, WhatSaysNothingNewIsNotWritten) {
  model::AgentStatus status;
  status.node = kNode;
  status.sequence = 1;
  status.reached = Phase::joined;
  report(status);
  connection(true);
  fact(ProviderState::running, "pid 7");
  const std::int64_t revision = store_->revision();
  status.sequence = 2;
  status.usage = model::NodeUsage{.cpu = 1.5};
  EXPECT_EQ(report(status), Accepted::yes);
  status.sequence = 3;
  status.usage->cpu = 2.5;
  EXPECT_EQ(report(status), Accepted::yes);
  EXPECT_EQ(connection(true), Accepted::yes);
  EXPECT_EQ(fact(ProviderState::running, "pid 7"), Accepted::yes);
  EXPECT_EQ(store_->revision(), revision);
  status.sequence = 4;
  status.gcs_up = true;
  report(status);
  EXPECT_EQ(store_->revision(), revision + 1);
  EXPECT_EQ(node().status.usage->cpu, 2.5);
}

TEST_F(ObservationsTest, AnUnreachableNodeComesBackByItsAgentAlone) {
  status(1, Phase::driving);
  add(NodeState::unreachable);
  EXPECT_EQ(fact(ProviderState::running), Accepted::yes);
  EXPECT_EQ(node().state, NodeState::unreachable);
  EXPECT_EQ(connection(false), Accepted::yes);
  EXPECT_EQ(node().state, NodeState::unreachable);
  status(1, Phase::driving);
  EXPECT_EQ(node().state, NodeState::serving);

  // After a lost connection alone: as far as it had come.
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.get<model::Node>(kNode.value));
    found.state = NodeState::unreachable;
    return tx.put(found, test::event());
  })));
  EXPECT_EQ(connection(true), Accepted::yes);
  EXPECT_EQ(node().state, NodeState::serving);
}

TEST_F(ObservationsTest, TheReasonOfATakedownStays) {
  add(NodeState::draining);
  status(1, Phase::driving, "running the driver");
  EXPECT_EQ(node().state, NodeState::draining);
  EXPECT_EQ(node().reason, "made");
  EXPECT_EQ(node().status.step, "running the driver");
}

TEST_F(ObservationsTest, TheEndOfANodeIsFinal) {
  EXPECT_EQ(fact(ProviderState::ended, "signal 9"), Accepted::yes);
  EXPECT_EQ(fact(ProviderState::running), Accepted::stale);
  EXPECT_EQ(fact(ProviderState::absent), Accepted::stale);
  EXPECT_EQ(fact(ProviderState::ended, "signal 9"), Accepted::yes) << "said twice";
  EXPECT_EQ(node().fact.detail, "signal 9");
  EXPECT_EQ(status(1, Phase::gone), Accepted::yes) << "the last report may be read after the death";
}

TEST_F(ObservationsTest, NothingChangesANodeThatIsGone) {
  add(NodeState::gone);
  const std::int64_t revision = store_->revision();
  EXPECT_EQ(status(9, Phase::driving), Accepted::stale);
  EXPECT_EQ(connection(true), Accepted::stale);
  EXPECT_EQ(fact(ProviderState::running), Accepted::stale);
  EXPECT_EQ(store_->revision(), revision);
}

TEST_F(ObservationsTest, AnUnknownNodeIsAnError) {
  EXPECT_EQ(code(record_connection(*store_, NodeId("other"), true, clock_.now())), ErrorCode::not_found);
}

}  // namespace
}  // namespace helio::store
