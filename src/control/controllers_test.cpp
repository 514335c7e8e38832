#include "control/controllers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helio::control {
namespace {

namespace cause = model::cause;
using model::AttemptState;
using model::JobState;
using model::NodeState;
using model::Phase;

/// One job with a head and a worker; steps are repeated until nothing changes, as the loop does.
struct Stage {
  Aggregate aggregate;
  Deadlines deadlines;
  std::map<NodeId, NodeMemory> memory;
  ManualClock clock;
  std::vector<Call> calls;
  std::optional<Duration> wake;
  const Aggregate* host = nullptr;
  bool has_guests = false;
  bool expects_guests = false;

  Stage() {
    model::Job job;
    job.id = JobId("j-1");
    job.spec.limits.readiness.d = 60s;
    job.state = JobState::starting;
    job.attempts = 1;
    job.created = job.state_since = clock.now();
    job.first_admitted = clock.now();
    job.reason = "starting";
    aggregate.job = job;
    model::Attempt attempt;
    attempt.id = AttemptId("j-1-1");
    attempt.job = job.id;
    attempt.created = attempt.state_since = clock.now();
    attempt.cluster = ClusterId("c-j-1-1");
    model::Cluster cluster;
    cluster.id = attempt.cluster;
    cluster.attempt = attempt.id;
    cluster.job = job.id;
    cluster.nodes = 2;
    aggregate.cluster = cluster;
    for (std::int32_t i = 0; i < 2; ++i) {
      model::Node node;
      node.id = NodeId(i == 0 ? "j-1-1-h" : "j-1-1-w1");
      node.job = job.id;
      node.attempt = attempt.id;
      node.cluster = cluster.id;
      node.role = i == 0 ? model::Role::head : model::Role::worker;
      node.index = i;
      node.desired = Phase::driving;
      aggregate.nodes[i] = node;
    }
    aggregate.attempt = attempt;
  }

  model::Node& head() { return aggregate.nodes[0]; }
  model::Node& worker() { return aggregate.nodes[1]; }

  void run() {
    calls.clear();
    for (int i = 0; i < 20; ++i) {
      Draft draft(aggregate, JobId("j-1"), {clock.now(), clock.mono()}, deadlines, memory);
      draft.host = host;
      draft.has_guests = has_guests;
      draft.expects_guests = expects_guests;
      step_nodes(draft);
      step_resize(draft);
      step_attempt(draft);
      step_cluster(draft);
      step_job(draft);
      wake = draft.wake();
      for (const Call& call : draft.calls) {
        calls.push_back(call);
        if (call.kind == Call::Kind::ensure) memory[call.node].ensured = true;
        if (call.kind == Call::Kind::end) memory[call.node].removed_at = clock.mono();
        if (call.kind == Call::Kind::salvage) memory[call.node].salvaged = true;
      }
      if (draft.transaction().empty() && draft.calls.empty()) return;
      aggregate.job = draft.job->value;
      if (draft.attempt) aggregate.attempt = draft.attempt->value;
      if (draft.cluster) aggregate.cluster = draft.cluster->value;
      for (const auto& node : draft.nodes) aggregate.nodes[node->index] = node.value;
      if (model::is_terminal(aggregate.attempt->state)) aggregate.attempt.reset();
      if (model::is_terminal(aggregate.job->state)) return;
      if (aggregate.cluster && model::is_terminal(aggregate.cluster->state)) {  // as the view does
        aggregate.cluster.reset();
        aggregate.nodes.clear();
      }
    }
    FAIL() << "the controllers do not come to rest";
  }

  void up() {
    for (auto& [index, node] : aggregate.nodes) {
      node.fact.state = model::ProviderState::running;
      node.connected = true;
      node.state = NodeState::connected;
      node.status.sequence = 1;
      node.status.step = "starting Ray";
    }
    run();
  }
  void driving() {
    up();
    for (auto& [index, node] : aggregate.nodes) {
      node.state = NodeState::serving;
      node.status.reached = Phase::driving;
      node.status.sequence = 5;
    }
    head().status.driver.phase = model::DriverPhase::running;
    head().status.marks = {{"nodes_alive", clock.now()}, {"api_up", clock.now()}, {"submitted", clock.now()}};
    run();
  }
  void driver_ends(int code) {
    head().status.driver.phase = model::DriverPhase::ended;
    head().status.driver.ray_status = code == 0 ? "SUCCEEDED" : "FAILED";
    head().status.driver.exit_code = code;
    head().status.marks.push_back({"driver_end", clock.now()});
    run();
  }
  void dies(model::Node& node) {
    node.fact.state = model::ProviderState::ended;
    node.fact.detail = "exit 0";
    node.fact.at = clock.now();
    node.status.logs_complete = true;
    run();
  }
  [[nodiscard]] bool called(Call::Kind kind, const NodeId& node) const {
    return std::ranges::any_of(calls, [&](const Call& call) { return call.kind == kind && call.node == node; });
  }
};

TEST(Controllers, SuccessEndsAtTheProofOfDeathOfAllNodes) {
  Stage stage;
  stage.run();
  EXPECT_TRUE(stage.called(Call::Kind::ensure, NodeId("j-1-1-h")));
  stage.driving();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);
  stage.clock.advance(5s);
  stage.driver_ends(0);
  ASSERT_TRUE(stage.aggregate.attempt);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
  EXPECT_EQ(stage.head().desired, Phase::drained);
  EXPECT_EQ(stage.head().generation, 2);
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);
  stage.clock.advance(1s);
  stage.dies(stage.worker());
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);
  EXPECT_NE(stage.aggregate.job->reason.find("head"), std::string::npos) << stage.aggregate.job->reason;
  stage.dies(stage.head());
  EXPECT_EQ(stage.aggregate.job->state, JobState::succeeded);
  EXPECT_EQ(stage.aggregate.job->exit_code, 0);
  EXPECT_EQ(stage.aggregate.cluster->state, model::ClusterState::gone);
  EXPECT_TRUE(stage.called(Call::Kind::wipe, NodeId("j-1-1-h")));
  EXPECT_TRUE(stage.head().token_hash.empty());
}

TEST(Controllers, ReadinessDeadlineNamesTheStepThatFailed) {
  Stage stage;
  stage.up();
  stage.worker().status.step = "waiting for the head's GCS";
  stage.clock.advance(59s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::starting);
  stage.clock.advance(2s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
  EXPECT_EQ(stage.aggregate.attempt->verdict->cause, cause::kDeadlineReadiness);
  EXPECT_NE(stage.aggregate.attempt->verdict->message.find("w1 was waiting for the head's GCS"), std::string::npos);
}

TEST(Controllers, AClockJumpMovesNoDeadline) {
  Stage stage;
  stage.up();
  stage.clock.jump_wall(2h);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::starting);
  stage.clock.jump_wall(-5h);
  stage.clock.advance(61s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
}

TEST(Controllers, UnreachableIsVisibleAndNoDeath) {
  Stage stage;
  stage.driving();
  stage.worker().connected = false;
  stage.run();
  stage.clock.advance(16s);
  stage.run();
  EXPECT_EQ(stage.worker().state, NodeState::unreachable);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  EXPECT_NE(stage.aggregate.job->reason.find("w1"), std::string::npos) << stage.aggregate.job->reason;
  EXPECT_NE(stage.aggregate.job->reason.find("does not answer"), std::string::npos);
  stage.clock.advance(1h);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
}

TEST(Controllers, RetryWaitsForProofAndIsCharged) {
  Stage stage;
  stage.driving();
  stage.clock.advance(3s);
  stage.worker().fact.detail = "signal 9";
  stage.dies(stage.worker());
  ASSERT_TRUE(stage.aggregate.attempt);
  EXPECT_EQ(stage.aggregate.attempt->verdict->cause, cause::kAgentDied);
  EXPECT_NE(stage.aggregate.attempt->verdict->decision.find("retry 1 of 5"), std::string::npos);
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);
  stage.clock.advance(10s);
  stage.dies(stage.head());
  EXPECT_FALSE(stage.aggregate.attempt);
  EXPECT_EQ(stage.aggregate.job->state, JobState::restarting);
  EXPECT_EQ(stage.aggregate.job->ledger.at("node"), 1);
  EXPECT_FALSE(stage.aggregate.cluster);
  stage.clock.advance(2s);
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::queued);
}

TEST(Controllers, StopGivesTheGraceAndIsBounded) {
  Stage stage;
  stage.driving();
  stage.aggregate.job->stop = model::StopReason::user;
  stage.aggregate.job->stop_asked = stage.clock.now();
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::stopping);
  EXPECT_TRUE(stage.head().stop_driver);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  // The agent never answers: the cluster is taken down, then ended by force.
  stage.clock.advance(51s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
  stage.clock.advance(121s);
  stage.run();
  EXPECT_TRUE(stage.called(Call::Kind::end, NodeId("j-1-1-h")));
  stage.dies(stage.worker());
  stage.dies(stage.head());
  EXPECT_EQ(stage.aggregate.job->state, JobState::stopped);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kStoppedUser);
}

/// A long-lived cluster whose nodes are all alive, to be shut down after ten minutes without use.
struct ClusterStage : Stage {
  ClusterStage() {
    aggregate.job->spec.type = model::JobType::cluster;
    aggregate.job->spec.limits.idle = Span{10min};
    up();
    for (auto& [index, node] : aggregate.nodes) {
      node.state = NodeState::serving;
      node.status.reached = index == 0 ? Phase::checked : Phase::driving;
    }
    head().status.marks = {{"nodes_alive", clock.now()}, {"api_up", clock.now()}};
    head().status.nodes_joined = {head().id, worker().id};
    run();
  }
  void idle_since(std::optional<Timestamp> at) {
    head().status.idle_since = at;
    run();
  }
};

TEST(Controllers, AClusterRunsWhenItsNodesAreAliveAndEndsByAStop) {
  ClusterStage stage;
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);
  EXPECT_EQ(stage.aggregate.job->reason, "ready");
  stage.clock.advance(48h);
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::running) << "it has no end of its own";
  stage.aggregate.job->stop = model::StopReason::user;
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending) << "there is no driver to wait for";
  stage.dies(stage.worker());
  stage.dies(stage.head());
  EXPECT_EQ(stage.aggregate.job->state, JobState::stopped);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kStoppedUser);
}

TEST(Controllers, AClusterThatNobodyUsesIsShutDownAndSaysSoBefore) {
  ClusterStage stage;
  stage.idle_since(stage.clock.now());
  EXPECT_THAT(stage.aggregate.job->reason, testing::StartsWith("idle since "));
  EXPECT_EQ(stage.aggregate.job->idle_since, stage.clock.now());
  stage.clock.advance(6min);
  stage.run();
  EXPECT_THAT(stage.aggregate.job->reason, testing::StartsWith("about to be shut down: idle since "));
  stage.idle_since(std::nullopt);
  EXPECT_EQ(stage.aggregate.job->reason, "ready") << "somebody came";
  stage.clock.advance(30min);
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);

  stage.idle_since(stage.clock.now());
  stage.clock.advance(9min);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  stage.clock.advance(61s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
  stage.dies(stage.worker());
  stage.dies(stage.head());
  EXPECT_EQ(stage.aggregate.job->state, JobState::stopped);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kStoppedIdle);
  EXPECT_FALSE(stage.aggregate.job->idle_since);
}

TEST(Controllers, AClusterThatAJobIsOnItsWayToIsNotIdle) {
  ClusterStage stage;
  stage.idle_since(stage.clock.now());
  stage.expects_guests = true;
  stage.clock.advance(11min);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  EXPECT_EQ(stage.aggregate.job->reason, "ready");
  stage.expects_guests = false;
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running) << "the head has not been heard since";
  stage.clock.advance(16s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending) << "nothing ran in it";
}

TEST(Controllers, AClusterWhoseAgentIsAwayIsNotTakenForIdle) {
  ClusterStage stage;
  stage.idle_since(stage.clock.now());
  stage.head().connected = false;
  stage.clock.advance(11min);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  stage.head().connected = true;
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running) << "it has not said anything yet";
  stage.idle_since(std::nullopt);
  stage.clock.advance(16s);
  stage.run();
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running) << "it had been used meanwhile";
  stage.idle_since(stage.clock.now() - 11min);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
}

TEST(Controllers, AClusterThatLosesANodeIsMadeAgain) {
  ClusterStage stage;
  stage.idle_since(stage.clock.now());
  stage.dies(stage.worker());
  stage.dies(stage.head());
  EXPECT_EQ(stage.aggregate.job->state, JobState::restarting);
  EXPECT_FALSE(stage.aggregate.job->idle_since);
}

TEST(Controllers, AClusterWaitsForTheJobsInItBeforeItGoes) {
  ClusterStage stage;
  stage.has_guests = true;
  stage.dies(stage.worker());
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
  EXPECT_EQ(stage.head().desired, Phase::driving) << "their logs lie on its disk";
  EXPECT_EQ(stage.worker().state, NodeState::gone) << "there is nothing of them on a worker";
  stage.dies(stage.head());
  EXPECT_TRUE(stage.called(Call::Kind::salvage, NodeId("j-1-1-h")));
  EXPECT_FALSE(stage.called(Call::Kind::wipe, NodeId("j-1-1-h")));
  stage.has_guests = false;
  stage.run();
  EXPECT_TRUE(stage.called(Call::Kind::wipe, NodeId("j-1-1-h")));
}

TEST(Controllers, AClusterThatShallBeSmallerLetsTheLastGoAndDoesNotCallItLost) {
  ClusterStage stage;
  stage.worker().placement.group = "workers";
  stage.aggregate.job->spec.workers.push_back({"workers", 0, "small", {}, {}, std::nullopt});
  stage.run();
  EXPECT_TRUE(stage.worker().leaving);
  EXPECT_EQ(stage.worker().desired, Phase::driving) << "it goes by itself, when its work is done";
  EXPECT_EQ(stage.aggregate.cluster->nodes, 1);
  EXPECT_EQ(stage.head().generation, 2) << "which drains it";
  EXPECT_EQ(stage.aggregate.job->reason, "ready; w1 leaves when the work there has ended");
  stage.dies(stage.worker());
  EXPECT_EQ(stage.worker().state, NodeState::gone);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  EXPECT_EQ(stage.aggregate.cluster->state, model::ClusterState::ready);
  EXPECT_EQ(stage.aggregate.job->reason, "ready");
}

TEST(Controllers, AClusterThatShallBeLargerWaitsForRoomAndANewcomerThatFailsTakesNothingAlong) {
  ClusterStage stage;
  stage.worker().placement.group = "workers";
  stage.aggregate.job->spec.workers.push_back({"workers", 2, "small", {}, {}, std::nullopt});
  stage.run();
  EXPECT_EQ(stage.aggregate.job->growing_since, stage.clock.now());
  EXPECT_EQ(stage.aggregate.job->reason, "ready; waits for room for more workers");
  EXPECT_FALSE(stage.worker().leaving);

  stage.clock.advance(1s);
  model::Node newcomer = stage.worker();
  newcomer.id = NodeId("j-1-1-w2");
  newcomer.index = 2;
  newcomer.created = stage.clock.now();
  newcomer.status = {};
  newcomer.added = false;
  stage.aggregate.nodes[2] = newcomer;
  stage.aggregate.cluster->nodes = 3;
  stage.aggregate.job->growing_since.reset();
  stage.run();
  EXPECT_FALSE(stage.aggregate.job->growing_since);
  stage.dies(stage.aggregate.nodes[2]);
  EXPECT_TRUE(stage.aggregate.nodes[2].leaving);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::running);
  EXPECT_EQ(stage.aggregate.cluster->nodes, 2);
  EXPECT_EQ(stage.aggregate.job->growing_since, stage.clock.now()) << "another one is tried";
  EXPECT_EQ(stage.aggregate.job->not_before, stage.clock.now() + 30s);

  // One that hangs is given up in time; one that was counted is a loss.
  newcomer.id = NodeId("j-1-1-w3");
  newcomer.index = 3;
  newcomer.created = stage.clock.now();
  stage.aggregate.nodes[3] = newcomer;
  stage.aggregate.cluster->nodes = 3;
  stage.run();
  stage.clock.advance(61s);
  stage.run();
  EXPECT_TRUE(stage.aggregate.nodes[3].leaving) << stage.aggregate.nodes[3].reason;
  EXPECT_EQ(stage.aggregate.nodes[3].desired, Phase::drained);
  newcomer.id = NodeId("j-1-1-w4");
  newcomer.index = 4;
  newcomer.created = stage.clock.now();
  stage.aggregate.nodes[4] = newcomer;
  stage.head().status.nodes_joined.push_back(newcomer.id);
  stage.run();
  EXPECT_TRUE(stage.aggregate.nodes[4].added);
  stage.dies(stage.aggregate.nodes[4]);
  EXPECT_EQ(stage.aggregate.attempt->state, AttemptState::ending);
}

/// A job with a submitter in a long-lived cluster.
struct GuestStage : Stage {
  Aggregate cluster;

  GuestStage() {
    aggregate.job->spec.cluster = "team";
    aggregate.job->guest_of = JobId("j-9");
    aggregate.attempt->guest_of = AttemptId("j-9-1");
    aggregate.nodes.erase(1);
    cluster.job.emplace();
    cluster.job->id = JobId("j-9");
    cluster.job->spec.name = "team";
    cluster.job->state = JobState::running;
    cluster.attempt.emplace();
    cluster.attempt->id = AttemptId("j-9-1");
    cluster.attempt->state = AttemptState::running;
    host = &cluster;
    driving();
  }
  void cluster_ends(const char* why) {
    clock.advance(5s);
    cluster.attempt->state = AttemptState::ending;
    cluster.attempt->state_since = clock.now();
    cluster.attempt->verdict.emplace();
    cluster.attempt->verdict->message = why;
    run();
    dies(head());
  }
};

TEST(Controllers, AJobWhoseClusterIsLostIsRetriedWhenThatIsBack) {
  GuestStage stage;
  EXPECT_EQ(stage.aggregate.job->state, JobState::running);
  stage.cluster_ends("w1 died");
  EXPECT_EQ(stage.aggregate.job->state, JobState::restarting);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kClusterLost);
  EXPECT_EQ(stage.aggregate.job->verdict->message, "the cluster 'team' was lost under the job: w1 died");
  stage.cluster.attempt.reset();
  stage.cluster.job->state = JobState::restarting;
  stage.cluster.job->reason = "w1 died";
  stage.clock.advance(1min);
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::queued);
  EXPECT_EQ(stage.aggregate.job->reason, "waiting for the cluster 'team', which is restarting: w1 died");
  stage.host = nullptr;
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::failed);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kClusterEnded);
}

TEST(Controllers, WhoEndsTheClusterEndsItsJobs) {
  GuestStage stage;
  stage.cluster.job->stop = model::StopReason::user;
  stage.cluster_ends("stopped by request");
  EXPECT_EQ(stage.aggregate.job->state, JobState::failed);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kClusterEnded);
}

TEST(Controllers, StopInTheQueueIsImmediate) {
  Stage stage;
  stage.aggregate = {std::move(stage.aggregate.job), {}, {}, {}};
  stage.aggregate.job->state = JobState::queued;
  stage.aggregate.job->stop = model::StopReason::user;
  Draft draft(stage.aggregate, JobId("j-1"), {stage.clock.now(), stage.clock.mono()}, stage.deadlines, stage.memory);
  step_job(draft);
  EXPECT_EQ(draft.job->value.state, JobState::stopped);
  EXPECT_EQ(draft.job->value.verdict->cause, cause::kStoppedUser);
}

TEST(Controllers, RunDeadlineFailsTheJob) {
  Stage stage;
  stage.aggregate.job->spec.limits.run.d = 10s;
  stage.driving();
  stage.clock.advance(11s);
  stage.run();
  EXPECT_TRUE(stage.head().stop_driver);
  stage.head().status.driver.phase = model::DriverPhase::ended;
  stage.head().status.driver.ray_status = "STOPPED";
  stage.head().status.marks.push_back({"driver_end", stage.clock.now() + 1s});
  stage.clock.advance(2s);
  stage.run();
  stage.dies(stage.worker());
  stage.dies(stage.head());
  EXPECT_EQ(stage.aggregate.job->state, JobState::failed);
  EXPECT_EQ(stage.aggregate.job->verdict->cause, cause::kDeadlineRun);
}

TEST(Controllers, ARetainedHeadIsKeptForItsTime) {
  Stage stage;
  stage.aggregate.job->spec.retention = {model::Retain::head, {60s}};
  stage.driving();
  stage.clock.advance(1s);
  stage.driver_ends(1);
  EXPECT_EQ(stage.worker().desired, Phase::drained);
  EXPECT_EQ(stage.head().desired, Phase::driving);
  stage.dies(stage.worker());
  EXPECT_EQ(stage.aggregate.job->state, JobState::running) << "the driver's log is not here yet";
  stage.head().status.logs_caught_up = true;
  stage.run();
  EXPECT_EQ(stage.aggregate.job->state, JobState::failed);
  EXPECT_EQ(stage.aggregate.cluster->state, model::ClusterState::retained);
  const auto step = [&] {
    stage.aggregate.job.reset();
    Draft draft(stage.aggregate, JobId("j-1"), {stage.clock.now(), stage.clock.mono()}, stage.deadlines, stage.memory);
    step_cluster(draft);
    return draft.nodes.front()->desired;
  };
  EXPECT_EQ(step(), Phase::driving);
  stage.clock.advance(61s);
  EXPECT_EQ(step(), Phase::drained);
}

TEST(Controllers, ANodeThatWasSeenIsNeverMadeAgain) {
  Stage stage;
  stage.up();
  stage.memory.clear();  // a new daemon
  stage.head().state = NodeState::requested;
  stage.run();
  EXPECT_FALSE(stage.called(Call::Kind::ensure, NodeId("j-1-1-h")));
}

TEST(Deadlines, CountWhatHasPassedBeforeTheyWereFirstSeen) {
  Deadlines deadlines;
  const Timestamp since{1'000'000'000};
  EXPECT_EQ(deadlines.left("j", "a", since, 10s, since + 4s, MonoTime{0}), Duration(6s));
  EXPECT_EQ(deadlines.left("j", "a", since, 10s, since - 1h, MonoTime{5'000'000}), Duration(1s));
  deadlines.forget("j");
  EXPECT_EQ(deadlines.left("j", "a", since, 10s, since - 1h, MonoTime{0}), Duration(10s));
}

}  // namespace
}  // namespace helio::control
