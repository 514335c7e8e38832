#include "node/diagnosis.h"
#include "node/machine_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace helio::node {
namespace {

namespace cause = model::cause;
using model::DriverPhase;
using model::Phase;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- the whole life -------------------------------------------------------------------------------------------------------------

TEST(Machine, HeadFromStartToGone) {
  World w(model::Role::head);
  EXPECT_THAT(w.step(), ElementsAre("start"));
  EXPECT_EQ(w.status().step, "starting Ray: waiting for its GCS");
  w.facts.gcs_port_open = true;
  EXPECT_THAT(w.advance(800ms), IsEmpty());
  EXPECT_TRUE(w.status().gcs_up);
  w.facts.api_up = true;
  EXPECT_THAT(w.advance(3s), IsEmpty());
  w.facts.head_agent_up = true;
  w.facts.rows_alive = {NodeId("a-1-h"), NodeId("a-1-w1")};
  EXPECT_THAT(w.advance(1s), IsEmpty()) << "one node is missing";
  EXPECT_EQ(w.status().step, "waiting for nodes: 2 of 3 are alive");
  EXPECT_EQ(w.status().reached, Phase::joined);
  w.facts.rows_alive.emplace_back("a-1-w2");
  EXPECT_THAT(w.advance(1s), ElementsAre("announce", "submit"));
  EXPECT_TRUE(w.machine.journal().submit_announced);
  w.facts.post = Facts::Post::accepted;
  EXPECT_THAT(w.advance(100ms), IsEmpty());
  EXPECT_EQ(w.status().reached, Phase::driving);
  w.facts.driver_known = true;
  w.facts.driver_ray_status = "PENDING";
  w.advance(100ms);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::pending);
  w.facts.driver_ray_status = "RUNNING";
  w.facts.driver_first_line = true;
  w.advance(1s);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::running);
  w.end_driver("SUCCEEDED", 0);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
  EXPECT_EQ(w.status().driver.exit_code, 0);
  EXPECT_EQ(w.fault(), "");
  w.facts.rows_alive = {NodeId("a-1-h")};
  w.desire(Phase::drained);
  EXPECT_THAT(w.advance(10ms), ElementsAre("signal 15"));
  w.facts.ray_start = down(1);
  w.facts.raylet = w.facts.gcs = w.facts.dashboard = down();
  w.facts.processes_left = true;
  EXPECT_THAT(w.advance(50ms), ElementsAre("kill_all")) << "what outlives `ray start` is ended";
  w.facts.processes_left = false;
  EXPECT_THAT(w.advance(50ms), ElementsAre("finish"));
  EXPECT_EQ(w.status().reached, Phase::drained);
  w.facts.logs_shipped = true;
  EXPECT_THAT(w.advance(50ms), ElementsAre("exit 0"));
  EXPECT_TRUE(w.status().logs_complete);
  EXPECT_EQ(w.fault(), "") << "exits that our teardown causes never count";
  EXPECT_THAT(w.marks(), ElementsAre("agent_up", "ray_exec", "gcs_up", "api_up", "head_agent_up", "nodes_alive", "submitted", "first_line",
                                     "driver_end"));
  EXPECT_THAT(w.advance(1s), IsEmpty()) << "nothing happens after the end";
}

TEST(Machine, WorkerStartsWhenTheHeadsGcsAccepts) {
  World w(model::Role::worker);
  EXPECT_THAT(w.step(), IsEmpty());
  EXPECT_EQ(w.status().step, "waiting for the head's GCS at 127.9.0.2:12000");
  w.facts.gcs_port_open = true;
  EXPECT_THAT(w.advance(700ms), ElementsAre("start"));
  EXPECT_EQ(w.status().reached, Phase::idle);
  w.facts.raylet = up();
  w.advance(2s);
  EXPECT_EQ(w.status().reached, Phase::driving);
  EXPECT_EQ(w.status().step, "serving");
  w.desire(Phase::drained);
  EXPECT_THAT(w.advance(1s), ElementsAre("signal 15"));
  w.facts.ray_start = down(1);
  w.facts.raylet = down();
  EXPECT_THAT(w.advance(300ms), ElementsAre("finish"));
  w.facts.logs_shipped = true;
  EXPECT_THAT(w.advance(10ms), ElementsAre("exit 0"));
}

TEST(Machine, StaysIdleUntilItShallJoin) {
  World w(model::Role::head, Phase::idle);
  EXPECT_THAT(w.step(), IsEmpty());
  w.desire(Phase::joined);
  EXPECT_THAT(w.step(), ElementsAre("start"));
}

TEST(Machine, DoesNotSubmitBeforeItShallDrive) {
  World w(model::Role::head, Phase::joined);
  w.bring_up();
  EXPECT_THAT(w.step(), IsEmpty());
  EXPECT_EQ(w.status().reached, Phase::joined);
  w.desire(Phase::driving);
  EXPECT_THAT(w.step(), ElementsAre("announce", "submit"));
}

TEST(Machine, AssignmentsOfOldGenerationsAreIgnored) {
  World w(model::Role::head, Phase::joined, Journal{.generation = 1});
  model::Assignment old = w.assignment;
  EXPECT_FALSE(w.machine.assign(old));
  w.desire(Phase::driving);
  old.generation = 1;
  EXPECT_FALSE(w.machine.assign(old));
  EXPECT_EQ(w.machine.assignment().phase, Phase::driving);
}

TEST(Machine, AfterARestartTheJournalsGenerationCounts) {
  Machine machine(NodeId("n"), "test", Journal{.generation = 7});
  model::Assignment assignment;
  assignment.generation = 6;
  EXPECT_FALSE(machine.assign(assignment));
  assignment.generation = 7;
  EXPECT_TRUE(machine.assign(assignment));
}

TEST(Machine, PhaseIsOnlyEverRaised) {
  World w(model::Role::head, Phase::driving);
  w.desire(Phase::joined);
  EXPECT_EQ(w.machine.assignment().phase, Phase::driving);
}

TEST(Machine, SequenceGrowsOnlyWithAChange) {
  World w(model::Role::head, Phase::driving, Journal{.sequence = 41});
  w.step();
  w.advance(1s);
  const auto first = w.status().sequence;
  EXPECT_GT(first, 41);
  w.machine.set_usage({.cpu = 1, .memory = 1_GiB, .disk = {}, .processes = 20});
  w.advance(1s);
  EXPECT_EQ(w.status().sequence, first) << "time and usage alone are no change";
  w.facts.gcs_port_open = true;
  w.advance(1s);
  EXPECT_EQ(w.status().sequence, first + 1);
}

// --- exactly one submission -----------------------------------------------------------------------------------------------------

TEST(Submission, AnswerThatIsUnclearIsOnlyLookedUp) {
  World w(model::Role::head);
  w.bring_up();
  w.step();
  w.facts.post = Facts::Post::unclear;
  EXPECT_THAT(w.advance(1s), IsEmpty());
  w.facts.driver_known = true;
  w.facts.driver_ray_status = "RUNNING";
  EXPECT_THAT(w.advance(1s), IsEmpty());
  EXPECT_EQ(w.status().driver.phase, DriverPhase::running);
}

TEST(Submission, UnclearAndUnknownEndsTheAttemptAndIsNeverRepeated) {
  World w(model::Role::head);
  w.bring_up();
  w.step();
  w.facts.post = Facts::Post::unclear;
  w.facts.driver_absent = true;
  for (int i = 0; i < 14; ++i) EXPECT_THAT(w.advance(1s), IsEmpty());
  EXPECT_EQ(w.fault(), "");
  EXPECT_THAT(w.advance(3s), IsEmpty());
  EXPECT_EQ(w.fault(), cause::kUnknown);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
}

TEST(Submission, RefusalIsRepeatedOnlyWhenTheClusterKnowsNothing) {
  World w(model::Role::head);
  w.bring_up();
  w.step();
  w.facts.post = Facts::Post::refused;
  EXPECT_THAT(w.advance(1s), IsEmpty()) << "not yet asked whether it has the job";
  w.facts.driver_absent = true;
  EXPECT_THAT(w.advance(1s), IsEmpty());
  EXPECT_TRUE(w.machine.journal().submit_refused);
  EXPECT_THAT(w.advance(600ms), ElementsAre("announce", "submit"));
  EXPECT_FALSE(w.machine.journal().submit_refused);
}

TEST(Submission, RefusedButKnownIsNotRepeated) {
  World w(model::Role::head);
  w.bring_up();
  w.step();
  w.facts.post = Facts::Post::refused;
  w.facts.driver_known = true;
  w.facts.driver_ray_status = "RUNNING";
  EXPECT_THAT(w.advance(1s), IsEmpty());
  EXPECT_EQ(w.status().driver.phase, DriverPhase::running);
}

TEST(Submission, RefusedForGoodEndsWithItsReason) {
  World w(model::Role::head);
  w.bring_up();
  w.step();
  w.facts.post = Facts::Post::refused;
  w.facts.post_final = true;
  w.facts.post_error = "400 runtime_env is wrong";
  w.step();
  EXPECT_EQ(w.fault(), cause::kEntrypointNotStarted);
  EXPECT_THAT(w.status().fault->message, HasSubstr("runtime_env is wrong"));
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
}

TEST(Submission, EndlessRefusalEndsInBoundedTime) {
  World w(model::Role::head);
  w.bring_up();
  w.step();
  int posts = 1;
  for (int i = 0; i < 100 && w.fault().empty(); ++i) {
    w.facts.post = Facts::Post::refused;
    w.facts.driver_absent = true;
    w.facts.post_error = "No available agent to submit job";
    for (const auto& did : w.advance(600ms)) posts += did == "submit" ? 1 : 0;
  }
  EXPECT_EQ(w.fault(), cause::kUnknown);
  EXPECT_LE(posts, 10);
}

struct RestartCase {
  const char* name;
  Journal journal;
  bool known;
  std::vector<std::string> done;
};
class AfterRestart : public testing::TestWithParam<RestartCase> {};
TEST_P(AfterRestart, OnlyLooksUnlessTheEarlierOneWasRefused) {
  World w(model::Role::head, Phase::driving, GetParam().journal);
  w.facts.ray_start = up();
  w.bring_up();
  w.facts.driver_known = GetParam().known;
  w.facts.driver_absent = !GetParam().known;
  w.facts.driver_ray_status = GetParam().known ? "RUNNING" : "";
  EXPECT_EQ(w.step(), GetParam().done);
  if (GetParam().known) EXPECT_EQ(w.status().driver.phase, DriverPhase::running);
}
INSTANTIATE_TEST_SUITE_P(
    Journals, AfterRestart,
    testing::Values(RestartCase{"Nothing", {}, false, {"announce", "submit"}},
                    RestartCase{"AnnouncedAndKnown", {.submit_announced = true}, true, {}},
                    RestartCase{"AnnouncedAndAbsent", {.submit_announced = true}, false, {}},
                    RestartCase{"RefusedAndAbsent", {.submit_announced = true, .submit_refused = true}, false, {"announce", "submit"}}),
    [](const auto& info) { return std::string(info.param.name); });

// --- faults ---------------------------------------------------------------------------------------------------------------------

struct FaultCase {
  const char* name;
  model::Role role;
  std::function<void(Facts&)> first;   ///< what falls
  std::function<void(Facts&)> second;  ///< 100 ms later
  std::string_view cause;
};
void no_more(Facts&) {}
class RunningFault : public testing::TestWithParam<FaultCase> {};
TEST_P(RunningFault, IsNamedAndEndsTheNode) {
  World w(GetParam().role);
  if (GetParam().role == model::Role::head) {
    w.run_driver();
  } else {
    w.bring_up();
    w.step();
  }
  GetParam().first(w.facts);
  w.facts.processes_left = true;
  EXPECT_THAT(w.step(), IsEmpty()) << "the settle window lets all facts arrive";
  GetParam().second(w.facts);
  std::vector<std::string> done = w.advance(100ms);
  if (done.empty()) done = w.advance(250ms);
  EXPECT_EQ(w.fault(), GetParam().cause);
  EXPECT_THAT(done, ElementsAre("kill_all"));
  w.facts.ray_start = down(137);
  w.facts.raylet = down();
  w.facts.processes_left = false;
  EXPECT_THAT(w.advance(50ms), ElementsAre("finish"));
  EXPECT_EQ(w.fault(), GetParam().cause) << "the first fault stays";
  w.facts.logs_shipped = true;
  EXPECT_THAT(w.advance(50ms), ElementsAre("exit 1"));
}
const auto kHead = model::Role::head;
const auto kWorker = model::Role::worker;
INSTANTIATE_TEST_SUITE_P(
    Causes, RunningFault,
    testing::Values(
        FaultCase{"Gcs", kHead, [](Facts& f) { f.gcs = down(); }, no_more, cause::kGcsDied},
        FaultCase{"GcsTakesRayStart", kHead, [](Facts& f) { f.gcs = down(); },
                  [](Facts& f) {
                    f.ray_start = down(1);
                    f.raylet = f.dashboard = down();
                    f.start_log_tail = "Some Ray subprocesses exited unexpectedly:\n  gcs_server [exit code=-9]\n";
                  },
                  cause::kGcsDied},
        FaultCase{"GcsInTheSameMomentAsAll", kHead,
                  [](Facts& f) {
                    f.ray_start = down(1);
                    f.gcs = f.raylet = f.dashboard = down();
                  },
                  no_more, cause::kGcsDied},
        FaultCase{"Raylet", kWorker, [](Facts& f) { f.raylet = down(); }, no_more, cause::kRayletDied},
        FaultCase{"RayletTakesRayStart", kWorker, [](Facts& f) { f.raylet = down(); }, [](Facts& f) { f.ray_start = down(1); },
                  cause::kRayletDied},
        FaultCase{"RayletOnTheHeadTakesGcs", kHead, [](Facts& f) { f.raylet = down(); },
                  [](Facts& f) {
                    f.ray_start = down(1);
                    f.gcs = f.dashboard = down();
                    f.start_log_tail =
                        "Some Ray subprocesses exited unexpectedly:\n  raylet [exit code=-9]\n\nRemaining processes will be killed.";
                  },
                  cause::kRayletDied},
        FaultCase{"Dashboard", kHead, [](Facts& f) { f.dashboard = down(); }, [](Facts& f) { f.ray_start = down(1); },
                  cause::kDashboardDied},
        FaultCase{"RayStartKilled", kHead, [](Facts& f) { f.ray_start = down(137); }, no_more, cause::kRayStartDied},
        FaultCase{"RayStartKilledTakesChildren", kHead, [](Facts& f) { f.gcs = f.raylet = f.dashboard = down(); },
                  [](Facts& f) { f.ray_start = down(137); }, cause::kRayStartDied},
        FaultCase{"LogMonitor", kHead,
                  [](Facts& f) {
                    f.raylet = f.gcs = down();
                    f.ray_start = down(1);
                    f.start_log_tail = "Some Ray subprocesses exited unexpectedly:\n  log_monitor [exit code=-9]\n";
                  },
                  no_more, cause::kRayStartDied},
        FaultCase{"RayStartLeaves", kWorker, [](Facts& f) { f.ray_start = down(0); }, no_more, cause::kRayStartDied},
        FaultCase{"MemoryLimit", kWorker,
                  [](Facts& f) {
                    f.oom_kills = 1;
                    f.raylet = down();
                  },
                  no_more, cause::kNodeOom},
        FaultCase{"MemoryLimitSeenLate", kWorker, [](Facts& f) { f.raylet = down(); }, [](Facts& f) { f.oom_kills = 1; }, cause::kNodeOom}),
    [](const auto& info) { return std::string(info.param.name); });

struct StartCase {
  const char* name;
  std::int32_t code;
  const char* log;
  std::string_view cause;
};
class StartFault : public testing::TestWithParam<StartCase> {};
TEST_P(StartFault, IsReadFromTheLogOfRayStart) {
  World w(kHead);
  w.step();
  w.facts.ray_start = down(GetParam().code);
  w.facts.start_log_tail = GetParam().log;
  w.step();
  w.advance(300ms);
  EXPECT_EQ(w.fault(), GetParam().cause);
  EXPECT_EQ(w.status().fault->exit_code, GetParam().code);
  ASSERT_EQ(w.status().fault->evidence.size(), 1U);
  EXPECT_EQ(w.status().fault->evidence[0].text, GetParam().log);
}
INSTANTIATE_TEST_SUITE_P(Texts, StartFault,
                         testing::Values(StartCase{"Plain", 1, "Traceback\nRuntimeError: no luck", cause::kRayStartFailed},
                                         StartCase{"Port", 1, "Failed to start the grpc server. The specified port is 12008.",
                                                   cause::kPortInUse},
                                         StartCase{"PortInPython", 1, "OSError: [Errno 98] Address already in use", cause::kPortInUse},
                                         StartCase{"NoProgram", 127, "/x/bin/ray: no such program", cause::kImageBroken},
                                         StartCase{"NoModule", 1, "ModuleNotFoundError: No module named 'ray'", cause::kImageBroken},
                                         StartCase{"OtherVersion", 2, "Error: No such option: --include-log-monitor", cause::kImageBroken}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Fault, RayletThatFallsDuringTheStartIsReadFromItsLog) {
  World w(kWorker);
  w.facts.gcs_port_open = true;
  w.step();
  w.facts.raylet = down();
  w.facts.start_log_tail = "Failed to start the grpc server. The specified port is 12108";
  w.step();
  w.advance(300ms);
  EXPECT_EQ(w.fault(), cause::kPortInUse);
}

TEST(Fault, DeadRowIsNamedWhenNoBetterCauseComes) {
  World w(kHead);
  w.run_driver();
  w.facts.rows_alive = {NodeId("a-1-h"), NodeId("a-1-w2")};
  w.facts.rows_dead = {NodeId("a-1-w1")};
  w.step();
  EXPECT_EQ(w.fault(), "");
  w.advance(1s);
  EXPECT_EQ(w.fault(), cause::kGcsRowDead);
  EXPECT_THAT(w.status().fault->message, HasSubstr("a-1-w1"));
  EXPECT_THAT(w.advance(1s), IsEmpty()) << "this node itself is whole: the daemon decides";
  w.end_driver("FAILED", 1);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended) << "the driver is still followed";
}

TEST(Fault, OwnDeadRowEndsTheNode) {
  World w(kHead);
  w.run_driver();
  w.facts.rows_alive = {NodeId("a-1-w1"), NodeId("a-1-w2")};
  w.facts.rows_dead = {NodeId("a-1-h")};
  w.step();
  EXPECT_THAT(w.advance(1s), ElementsAre("kill_all"));
}

TEST(Fault, RowsOfANodeThatCameBackDoNotCount) {
  World w(kHead);
  w.run_driver();
  w.facts.rows_dead = {NodeId("a-1-w1")};
  w.step();
  w.advance(5s);
  EXPECT_EQ(w.fault(), "");
}

TEST(Fault, WorkersThatLeaveAfterTheDriverDoNotCount) {
  World w(kHead);
  w.run_driver();
  w.end_driver("SUCCEEDED", 0);
  w.facts.rows_alive = {NodeId("a-1-h")};
  w.facts.rows_dead = {NodeId("a-1-w1"), NodeId("a-1-w2")};
  w.step();
  w.advance(5s);
  EXPECT_EQ(w.fault(), "");
}

TEST(Fault, FullDiskEndsTheNode) {
  World w(kHead);
  w.run_driver();
  w.facts.disk_full = true;
  EXPECT_THAT(w.step(), ElementsAre("kill_all"));
  EXPECT_EQ(w.fault(), cause::kNodeDiskFull);
}

TEST(Fault, JournalThatCannotBeWrittenStopsTheSubmission) {
  World w(kHead);
  w.bring_up();
  const Step announced = w.machine.step(w.facts);
  ASSERT_EQ(announced.again, Duration{0});
  w.facts.disk_full = true;
  w.facts.processes_left = true;
  EXPECT_THAT(w.step(), ElementsAre("kill_all")) << "and no submit";
}

TEST(Fault, KilledTaskAloneIsRaysToRetry) {
  World w(kHead);
  w.run_driver();
  w.facts.oom_kills = 1;
  w.facts.oom_after = w.facts.now - Duration(4s);
  EXPECT_THAT(w.step(), IsEmpty());
  EXPECT_EQ(w.fault(), "");
  const auto& oom = w.machine.status().oom;
  ASSERT_TRUE(oom) << "but it is told, for a driver that fails because of it";
  EXPECT_EQ(oom->count, 1);
  EXPECT_EQ(oom->after, w.facts.now - Duration(4s));
  EXPECT_EQ(oom->by, w.facts.now);
}

TEST(Fault, FallBeforeTheDrainStillCounts) {
  World w(kHead);
  w.run_driver();
  w.facts.gcs = down();
  w.step();
  w.desire(Phase::drained);
  w.advance(50ms);
  EXPECT_EQ(w.fault(), cause::kGcsDied);
}

struct DriverCase {
  const char* name;
  const char* type;
  const char* message;
  std::optional<std::int32_t> code;
  std::string_view cause;
};
class DriverFault : public testing::TestWithParam<DriverCase> {};
TEST_P(DriverFault, IsReadFromRaysRecord) {
  World w(kHead);
  w.run_driver();
  w.end_driver("FAILED", GetParam().code, GetParam().type, GetParam().message);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
  EXPECT_EQ(w.fault(), GetParam().cause);
  EXPECT_THAT(w.advance(1s), IsEmpty()) << "the node is whole";
}
INSTANTIATE_TEST_SUITE_P(
    Records, DriverFault,
    testing::Values(DriverCase{"ExitCode", "JOB_ENTRYPOINT_COMMAND_ERROR", "Job entrypoint command failed with exit code 3", 3, ""},
                    DriverCase{"ExitCodeOld", "", "Job failed due to an application error, last available logs... failed with exit code 3",
                               3, ""},
                    DriverCase{"Supervisor", "JOB_SUPERVISOR_ACTOR_DIED", "Job supervisor actor died: x", {}, cause::kSupervisorDied},
                    DriverCase{"SupervisorOld", "", "Unexpected error occurred: The actor died unexpectedly", {}, cause::kSupervisorDied},
                    DriverCase{"RuntimeEnv", "RUNTIME_ENV_SETUP_FAILURE", "runtime_env setup failed: pip", {}, cause::kRuntimeEnv},
                    DriverCase{"RuntimeEnvOld", "", "runtime_env setup failed: pip", {}, cause::kRuntimeEnv},
                    DriverCase{"Unschedulable", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE", "no", {}, cause::kInfeasible},
                    DriverCase{"Shell", "JOB_ENTRYPOINT_COMMAND_START_ERROR", "no shell", {}, cause::kEntrypointNotStarted}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Fault, DriverKilledForMemory) {
  World w(kHead);
  w.run_driver();
  w.facts.oom_kills = 1;
  w.step();
  w.facts.now = w.facts.now + Duration(1s);
  w.end_driver("FAILED", 137, "JOB_ENTRYPOINT_COMMAND_ERROR", "Job entrypoint command failed with exit code 137");
  EXPECT_EQ(w.fault(), cause::kNodeOom);
}

// --- stop and drain -------------------------------------------------------------------------------------------------------------

TEST(Stop, BeforeTheSubmissionNothingRuns) {
  World w(kHead);
  w.step();
  w.ask_stop();
  w.step();
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
  EXPECT_EQ(w.status().driver.ray_status, "STOPPED");
  w.bring_up();
  EXPECT_THAT(w.step(), IsEmpty());
}

TEST(Stop, RayEndsItWithinItsGrace) {
  World w(kHead);
  w.run_driver();
  w.ask_stop();
  EXPECT_THAT(w.step(), ElementsAre("stop_driver"));
  EXPECT_EQ(w.status().driver.phase, DriverPhase::stopping);
  EXPECT_THAT(w.advance(10s), IsEmpty());
  w.end_driver("STOPPED", {});
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
  EXPECT_EQ(w.fault(), "");
}

TEST(Stop, StubbornDriverIsKilledAfterTheGrace) {
  World w(kHead);
  w.run_driver();
  w.ask_stop();
  w.step();
  EXPECT_THAT(w.advance(30s), IsEmpty()) << "Ray itself kills at the end of the grace";
  EXPECT_THAT(w.advance(3s), ElementsAre("kill_driver"));
  w.end_driver("FAILED", 137, "JOB_ENTRYPOINT_COMMAND_ERROR", "failed with exit code 137");
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
  EXPECT_EQ(w.fault(), "");
}

TEST(Stop, RecordThatNeverFollowsIsEndedByUs) {
  World w(kHead);
  w.run_driver();
  w.ask_stop();
  w.step();
  w.advance(33s);
  w.advance(5s);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended);
  EXPECT_EQ(w.status().driver.ray_status, "STOPPED");
}

TEST(Stop, DriverThatWaitsForResourcesEndsAtOnce) {
  World w(kHead);
  w.bring_up();
  w.step();
  w.facts.post = Facts::Post::accepted;
  w.facts.driver_known = true;
  w.facts.driver_ray_status = "PENDING";
  w.step();
  w.ask_stop();
  EXPECT_THAT(w.step(), ElementsAre("stop_driver"));
  w.advance(3s);
  EXPECT_EQ(w.status().driver.phase, DriverPhase::ended) << "Ray never ends such a job";
  EXPECT_EQ(w.status().driver.ray_status, "STOPPED");
}

TEST(Drain, HeadWaitsForItsWorkersButNotForEver) {
  World w(kHead);
  w.run_driver();
  w.end_driver("SUCCEEDED", 0);
  w.desire(Phase::drained);
  EXPECT_THAT(w.step(), IsEmpty());
  EXPECT_EQ(w.status().step, "waiting for the workers to leave");
  EXPECT_THAT(w.advance(1s), IsEmpty());
  EXPECT_THAT(w.advance(500ms), ElementsAre("signal 15"));
}

TEST(Drain, RayThatIgnoresTheSignalIsKilled) {
  World w(kWorker);
  w.bring_up();
  w.step();
  w.desire(Phase::drained);
  EXPECT_THAT(w.step(), ElementsAre("signal 15"));
  w.facts.processes_left = true;
  EXPECT_THAT(w.advance(4900ms), IsEmpty());
  EXPECT_THAT(w.advance(100ms), ElementsAre("kill_all"));
  EXPECT_THAT(w.advance(500ms), IsEmpty());
  EXPECT_THAT(w.advance(500ms), ElementsAre("kill_all")) << "one may have been born while all were killed";
}

TEST(Drain, WaitsForTheDaemonToTakeTheLogs) {
  World w(kWorker);
  w.bring_up();
  w.step();
  w.facts.ray_start = down(1);
  w.facts.raylet = down();
  w.desire(Phase::drained);
  EXPECT_THAT(w.step(), ElementsAre("finish"));
  EXPECT_THAT(w.advance(1h), IsEmpty());
  EXPECT_EQ(w.status().step, "waiting for the daemon to take the logs");
  w.desire(Phase::gone);
  EXPECT_THAT(w.step(), ElementsAre(testing::StartsWith("exit"))) << "gone does not wait";
}

TEST(Drain, GoneKillsAtOnce) {
  World w(kHead);
  w.run_driver();
  w.facts.processes_left = true;
  w.machine.leave();
  EXPECT_THAT(w.step(), ElementsAre("kill_all"));
  w.facts.ray_start = down(137);
  w.facts.gcs = w.facts.raylet = w.facts.dashboard = down();
  w.facts.processes_left = false;
  EXPECT_THAT(w.advance(50ms), ElementsAre("exit 0"));
  EXPECT_EQ(w.fault(), "");
  EXPECT_EQ(w.status().reached, Phase::gone);
}

TEST(Drain, NodeThatNeverStartedLeavesAtOnce) {
  World w(kWorker);
  w.step();
  w.desire(Phase::drained);
  w.facts.logs_shipped = true;
  EXPECT_THAT(w.step(), ElementsAre("finish", "exit 0"));
}

TEST(Diagnosis, ReportIsReadThroughColours) {
  const StartReport report = read_start_report(
      "\x1b[31mSome Ray subprocesses exited unexpectedly:\x1b[39m\n  \x1b[31m\x1b[1mdashboard\x1b[22m\x1b[0m\x1b[2m [exit "
      "code=-9]\x1b[22m\n");
  EXPECT_TRUE(report.dashboard);
  EXPECT_EQ(report.other, "");
}

TEST(Diagnosis, LastLine) {
  EXPECT_EQ(last_line("a\n b \n\n"), "b");
  EXPECT_EQ(last_line(" \n"), "");
}

}  // namespace
}  // namespace helio::node
