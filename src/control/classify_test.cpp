#include "control/classify.h"

#include <gtest/gtest.h>
#include <functional>

namespace helio::control {
namespace {

namespace cause = model::cause;
using model::CauseClass;

constexpr Timestamp kStart{1'700'000'000'000'000};

/// A head and two workers that are well, in the middle of a run.
struct Scene {
  AttemptFacts facts;
  NodeFacts& head() { return facts.nodes[0]; }
  NodeFacts& worker(std::size_t i) { return facts.nodes[i]; }

  Scene() {
    facts.stage = "running";
    for (std::int32_t i = 0; i < 3; ++i) {
      NodeFacts node;
      node.role = i == 0 ? model::Role::head : model::Role::worker;
      node.index = i;
      node.id = NodeId(i == 0 ? "j-1-h" : "j-1-w" + std::to_string(i));
      node.fact.state = model::ProviderState::running;
      facts.nodes.push_back(node);
    }
    head().status.driver.phase = model::DriverPhase::running;
  }

  Scene& driver(std::string ray_status, std::optional<int> code, Duration at, std::string type = "", std::string message = "") {
    auto& driver = head().status.driver;
    driver.phase = model::DriverPhase::ended;
    driver.ray_status = std::move(ray_status);
    driver.exit_code = code;
    driver.error_type = std::move(type);
    driver.message = std::move(message);
    head().status.marks.push_back({"driver_end", kStart + at});
    return *this;
  }
  Scene& fault(std::size_t node, std::string_view id, Duration at) {
    model::NodeFault fault;
    fault.cause = id;
    fault.message = "it fell";
    fault.at = kStart + at;
    facts.nodes[node].status.fault = fault;
    return *this;
  }
  Scene& dead(std::size_t node, Duration at, std::string_view id = "", std::string detail = "signal 9") {
    auto& fact = facts.nodes[node].fact;
    fact.state = model::ProviderState::ended;
    fact.cause = id;
    fact.detail = std::move(detail);
    fact.at = kStart + at;
    return *this;
  }
  Scene& asked(std::string_view id, Duration at) {
    facts.asked = Asked{std::string(id), "asked", kStart + at};
    return *this;
  }
  Scene& teardown(Duration at) {
    facts.teardown_since = kStart + at;
    return *this;
  }
  Scene& all() {
    facts.completion = model::Completion::all;
    return *this;
  }
};

struct Case {
  const char* name;
  std::function<void(Scene&)> set;
  std::string_view expected;  ///< empty: goes on
  std::string node = {};
};

class Classify : public testing::TestWithParam<Case> {};

TEST(ClassifyText, SaysWhyTheEntrypointFailed) {
  Scene scene;
  scene.driver("FAILED", 1, 10s, "",
               "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n" +
                   std::string(3000, 'x') + "\n  raise\nValueError: boom\n");
  const auto verdict = classify(scene.facts);
  ASSERT_TRUE(verdict);
  EXPECT_NE(verdict->message.find("exited with code 1: ValueError: boom"), std::string::npos) << verdict->message;
  ASSERT_FALSE(verdict->evidence.empty());
  EXPECT_EQ(verdict->evidence.front().text, "  raise\nValueError: boom") << "the end of the log, not its beginning";
}

TEST_P(Classify, NamesTheEarliestRoot) {
  Scene scene;
  GetParam().set(scene);
  const auto verdict = classify(scene.facts);
  if (GetParam().expected.empty()) {
    ASSERT_FALSE(verdict) << verdict->cause;
    return;
  }
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->cause, GetParam().expected);
  EXPECT_EQ(verdict->charged_to, model::cause_class(GetParam().expected));
  EXPECT_FALSE(verdict->message.empty());
  if (!GetParam().node.empty()) EXPECT_EQ(verdict->node, GetParam().node);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Classify,
    testing::Values(
        Case{"MemoryKillShortlyBefore",
             [](Scene& s) {
               s.driver("FAILED", 1, 20s);
               s.facts.nodes[2].status.oom = model::OomKills{3, kStart + 14s, kStart + 19s};
             },
             cause::kNodeOom, "j-1-w2"},
        Case{"MemoryKillSeenOnlyAfterwards",
             [](Scene& s) {
               s.driver("FAILED", 1, 20s).teardown(21s);
               s.facts.nodes[1].status.oom = model::OomKills{1, kStart + 16s, kStart + 22s};
             },
             cause::kNodeOom, "j-1-w1"},
        Case{"MemoryKillLongBefore",
             [](Scene& s) {
               s.driver("FAILED", 1, 60s);
               s.facts.nodes[1].status.oom = model::OomKills{1, kStart + 16s, kStart + 21s};
             },
             cause::kEntrypointExit},
        Case{"MemoryKillThatRayMended",
             [](Scene& s) {
               s.driver("SUCCEEDED", 0, 20s);
               s.facts.nodes[1].status.oom = model::OomKills{1, kStart + 16s, kStart + 19s};
             },
             cause::kSucceeded},
        Case{"NothingHappened", [](Scene&) {}, ""}, Case{"Succeeded", [](Scene& s) { s.driver("SUCCEEDED", 0, 10s); }, cause::kSucceeded},
        Case{"ExitCode", [](Scene& s) { s.driver("FAILED", 3, 10s); }, cause::kEntrypointExit},
        Case{"KilledBySignal", [](Scene& s) { s.driver("FAILED", 137, 10s); }, cause::kEntrypointSignal},
        Case{"Exit255IsNoSignal", [](Scene& s) { s.driver("FAILED", 255, 10s); }, cause::kEntrypointExit},
        Case{"RuntimeEnvByType", [](Scene& s) { s.driver("FAILED", {}, 10s, "RUNTIME_ENV_SETUP_FAILURE"); }, cause::kRuntimeEnv},
        Case{"RuntimeEnvByText", [](Scene& s) { s.driver("FAILED", {}, 10s, "", "runtime_env setup failed: pip"); }, cause::kRuntimeEnv},
        Case{"Supervisor", [](Scene& s) { s.driver("FAILED", {}, 10s, "JOB_SUPERVISOR_ACTOR_DIED"); }, cause::kSupervisorDied},
        Case{"Unschedulable", [](Scene& s) { s.driver("FAILED", {}, 10s, "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"); }, cause::kInfeasible},
        Case{"FailedForUnknownReason", [](Scene& s) { s.driver("FAILED", {}, 10s); }, cause::kUnknown},
        Case{"StoppedInsideTheCluster", [](Scene& s) { s.driver("STOPPED", {}, 10s); }, cause::kStoppedUser},
        Case{"RayletDied", [](Scene& s) { s.fault(1, cause::kRayletDied, 5s); }, cause::kRayletDied, "j-1-w1"},
        Case{"AgentDied", [](Scene& s) { s.dead(2, 5s); }, cause::kAgentDied, "j-1-w2"},
        Case{"ProviderKnowsWhy", [](Scene& s) { s.dead(0, 5s, cause::kNodeOom); }, cause::kNodeOom, "j-1-h"},
        Case{"Reboot", [](Scene& s) { s.dead(0, 5s, cause::kHostReboot); }, cause::kHostReboot},
        Case{"FaultThenExitIsTheFault", [](Scene& s) { s.fault(1, cause::kRayletDied, 5s).dead(1, 6s, "", "exit 1"); }, cause::kRayletDied},
        Case{"NodeDeathExplainsTheDriver", [](Scene& s) { s.driver("FAILED", 1, 6s).fault(1, cause::kRayletDied, 5s); },
             cause::kRayletDied},
        Case{"DeathIsNoticedAMomentLater", [](Scene& s) { s.driver("FAILED", 1, 5s).dead(1, 6s); }, cause::kAgentDied},
        Case{"DriverFirstThenANode", [](Scene& s) { s.driver("FAILED", 1, 5s).dead(1, 9s); }, cause::kEntrypointExit},
        Case{"HeadBeforeWorkerAtOneTime", [](Scene& s) { s.fault(0, cause::kGcsDied, 5s).fault(1, cause::kRayletDied, 5s); },
             cause::kGcsDied, "j-1-h"},
        Case{"EarlierWorkerBeforeHead", [](Scene& s) { s.fault(0, cause::kGcsDied, 6s).fault(2, cause::kNodeOom, 5s); }, cause::kNodeOom,
             "j-1-w2"},
        Case{"OurTeardownNeverCounts",
             [](Scene& s) { s.driver("SUCCEEDED", 0, 5s).teardown(6s).dead(1, 7s).fault(0, cause::kRayStartDied, 7s).all(); },
             cause::kSucceeded},
        Case{"TeardownAlone", [](Scene& s) { s.teardown(6s).dead(0, 7s).driver("FAILED", 143, 7s); }, ""},
        Case{"SuccessWinsOverALostNode", [](Scene& s) { s.driver("SUCCEEDED", 0, 9s).dead(1, 5s); }, cause::kSucceeded},
        Case{"CompletionAllCountsTheNode", [](Scene& s) { s.driver("SUCCEEDED", 0, 9s).dead(1, 5s).all(); }, cause::kAgentDied},
        Case{"StopThenDriverEnds", [](Scene& s) { s.asked(cause::kStoppedUser, 5s).driver("STOPPED", {}, 6s); }, cause::kStoppedUser},
        Case{"StopThenDriverFails", [](Scene& s) { s.asked(cause::kDeadlineRun, 5s).driver("FAILED", 143, 6s); }, cause::kDeadlineRun},
        Case{"FailedJustBeforeTheStop", [](Scene& s) { s.driver("FAILED", 2, 5s).asked(cause::kStoppedUser, 6s); }, cause::kEntrypointExit},
        Case{"SucceededBeforeTheStopTookEffect", [](Scene& s) { s.asked(cause::kStoppedUser, 5s).driver("SUCCEEDED", 0, 6s); },
             cause::kSucceeded},
        Case{"CouldNotBeMade",
             [](Scene& s) {
               s.worker(1).fact = {};
               s.worker(1).fact.cause = cause::kProviderFailed;
               s.worker(1).fact.detail = "clone3: EPERM";
             },
             cause::kProviderFailed, "j-1-w1"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ClassifyEvidence, IsCutAndNamesItsSource) {
  Scene scene;
  scene.driver("FAILED", 1, 5s, "JOB_ENTRYPOINT_COMMAND_ERROR", std::string(2000, 'x'));
  const auto verdict = classify(scene.facts);
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->evidence.size(), 2U);
  EXPECT_EQ(verdict->evidence[0].source, "driver");
  EXPECT_LE(verdict->evidence[0].text.size(), 512U);
  EXPECT_EQ(verdict->exit_code, 1);
}

model::Verdict verdict_of(std::string_view id) {
  model::Verdict verdict;
  verdict.cause = id;
  verdict.charged_to = model::cause_class(id);
  return verdict;
}

TEST(Decide, UserErrorsAreFinalByDefault) {
  const Decision decision = decide(model::Job{}, verdict_of(cause::kEntrypointExit));
  EXPECT_FALSE(decision.retry);
  EXPECT_EQ(decision.text, "final: no retries for user errors");
}

TEST(Decide, BackOffDoublesUpToItsMaximumAndTheBudgetEnds) {
  model::Job job;
  job.spec.retries.node = 4;
  job.spec.retries.backoff.d = 2s;
  job.spec.retries.max_backoff.d = 5s;
  const Duration expected[] = {2s, 4s, 5s, 5s};
  for (int used = 0; used < 4; ++used) {
    job.ledger["node"] = used;
    const Decision decision = decide(job, verdict_of(cause::kAgentDied));
    EXPECT_TRUE(decision.retry);
    EXPECT_EQ(decision.backoff, expected[used]);
  }
  EXPECT_NE(decide(job, verdict_of(cause::kAgentDied)).text.find("retry 4 of 4"), std::string::npos);
  job.ledger["node"] = 4;
  EXPECT_FALSE(decide(job, verdict_of(cause::kAgentDied)).retry);
  // Another class has its own budget.
  EXPECT_TRUE(decide(job, verdict_of(cause::kSupervisorDied)).retry);
}

TEST(Decide, AStopEndsRetries) {
  model::Job job;
  job.stop = model::StopReason::user;
  EXPECT_FALSE(decide(job, verdict_of(cause::kAgentDied)).retry);
  EXPECT_FALSE(decide(model::Job{}, verdict_of(cause::kDeadlineRun)).retry);
}

}  // namespace
}  // namespace helio::control
