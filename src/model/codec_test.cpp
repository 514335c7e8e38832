// What is written is read back the same, and what users write wrong is refused with its path.

#include "model/access.h"
#include "model/cluster.h"
#include "model/gang.h"
#include "model/job.h"
#include "model/pool.h"
#include "model/settings.h"

#include <gtest/gtest.h>

namespace helio::model {
namespace {

template <class T>
void round_trip(const T& value) {
  const json::Value written = json::encode(value);
  const auto back = json::parse_as<T>(json::dump(written));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(json::encode(*back), written);
}

Job full_job() {
  Job job;
  job.id = JobId("j-0123456789abcdef");
  job.revision = 7;
  job.owner = "admin";
  job.spec.name = "tune";
  job.spec.entrypoint.argv = std::vector<std::string>{"python", "train.py"};
  job.spec.entrypoint.resources = EntrypointResources{1, 0.5, 1_GiB, {{"disk", 2}}};
  job.spec.head = {"head", false, 512_MiB};
  job.spec.workers = {{"cpu", 2, "small", {{"zone", "a"}}, {{"slots", 4}}, 1_GiB}};
  job.spec.runtime_env = *json::parse_as<json::Object>(R"({"pip":["x"],"env_vars":{"A":"1"}})");
  job.spec.env = {{"A", "1", false}, {"B", "***", true}};
  job.spec.mounts = {{"/data", "/data", true}};
  job.spec.retention = {Retain::head, Span{10min}};
  job.spec.labels = {{"team", "x"}};
  job.state = JobState::running;
  job.reason = "driver runs";
  job.queued_since = job.first_admitted = job.stop_asked = job.finished = job.not_before = Timestamp{1'700'000'000'000'001};
  job.stop = StopReason::user;
  job.current_attempt = AttemptId("j-0123456789abcdef-1");
  job.verdict =
      Verdict{"entrypoint.exit", CauseClass::user, Confidence::medium, "m", "running", "n", 3, {{"driver", "boom", Timestamp{5}}}, "d"};
  job.exit_code = 3;
  job.ledger = {{"node", 2}};
  job.rerun_of = JobId("j-x");
  job.warnings = {"w"};
  return job;
}

TEST(Codec, resources_round_trip) {
  round_trip(full_job());
  round_trip(Job{});

  Attempt attempt;
  attempt.id = AttemptId("j-x-1");
  attempt.placement = {{NodeId("j-x-1-h"), HostId("local"), Role::head, 0, "head", "small", {{500}, 2_GiB, 1_GiB, 1}, {0, 3}}};
  attempt.marks = {{"accepted", Timestamp{1}}};
  attempt.driver = {DriverPhase::running, "j-x-1", "RUNNING", "", "", 0, "j-x-1-h"};
  attempt.verdict = full_job().verdict;
  round_trip(attempt);

  Cluster cluster;
  cluster.retained_until = Timestamp{9};
  cluster.retain = Retain::all;
  round_trip(cluster);

  Node node;
  node.status.fault = NodeFault{"raylet.died", "m", 137, {{"s", "t", std::nullopt}}, Timestamp{3}};
  node.status.usage = NodeUsage{1.5, 1_GiB, 2_GiB, 17};
  node.status.nodes_joined = {NodeId("a")};
  node.fact = {ProviderState::ended, "signal 9", 137, "agent.died", Timestamp{3}};
  round_trip(node);

  Assignment assignment;
  assignment.driver = DriverSpec{"j-x-1", "python a.py", json::Object{{"pip", json::Array{"x"}}}, {{"k", "v"}}, EntrypointResources{}, {}};
  assignment.labels = {{"a", "b"}};
  round_trip(assignment);
  round_trip(AgentHello{});
  round_trip(StreamInfo{3, "driver", "driver", {12}, true});

  round_trip(Flavor{FlavorId("small"), {{1000}, 2_GiB, 700_MiB, 0}, "", false, "a", 2, Timestamp{1}});
  round_trip(Image{ImageId("default"), "/opt/p", "3.11.2", "2.60.0", "abc", true, 1, Timestamp{1}});
  Host host;
  host.gpus = {{0, "H", 80_GiB, true}};
  round_trip(host);
  round_trip(Token{TokenId("t"), "n", "admin", AccessRole::op, {"team-a"}, "h", Timestamp{1}, Timestamp{2}, 1});
  round_trip(Settings{});
}

struct Wrong {
  const char* text;
  const char* path;
  const char* says;
};

TEST(Codec, a_wrong_spec_is_refused_with_its_path) {
  const Wrong cases[] = {
      {R"([])", "$", "expected object"},
      {R"({})", "$.entrypoint", "missing field"},
      {R"({"entrypoint":{"argv":"x"}})", "$.entrypoint.argv", "expected array"},
      {R"({"entrypoint":{"argv":[1]}})", "$.entrypoint.argv[0]", "expected string"},
      {R"({"entrypoint":{"argv":["x"]},"wrokers":[]})", "$.wrokers", "unknown field; known are"},
      {R"({"entrypoint":{"argv":["x"]},"workers":[{}]})", "$.workers[0].count", "missing field"},
      {R"({"entrypoint":{"argv":["x"]},"workers":[{"count":1.5}]})", "$.workers[0].count", "expected integer"},
      {R"({"entrypoint":{"argv":["x"]},"workers":[{"count":99999999999}]})", "$.workers[0].count", "out of range"},
      {R"({"entrypoint":{"argv":["x"]},"completion":"any"})", "$.completion", "expected one of driver, all"},
      {R"({"entrypoint":{"argv":["x"]},"limits":{"run":"soon"}})", "$.limits.run", "duration"},
      {R"({"entrypoint":{"argv":["x"]},"head":{"object_store_memory":"1 GB"}})", "$.head.object_store_memory", "512MiB"},
      {R"({"entrypoint":{"argv":["x"]},"env":[{"name":"A"}]})", "$.env[0].value", "missing field"},
      {R"({"entrypoint":{"argv":["x"]},"runtime_env":[]})", "$.runtime_env", "expected object"},
  };
  for (const Wrong& wrong : cases) {
    const auto spec = json::parse_as<JobSpec>(wrong.text);
    ASSERT_FALSE(spec) << wrong.text;
    EXPECT_EQ(spec.error().code(), ErrorCode::invalid_argument) << wrong.text;
    EXPECT_EQ(spec.error().path(), wrong.path) << wrong.text;
    EXPECT_NE(spec.error().message().find(wrong.says), std::string::npos) << spec.error().message();
  }
}

TEST(Codec, stored_documents_of_a_newer_version_are_read) {
  const auto job = json::parse_as<Job>(R"({"id":"j-x","tomorrow":1,"spec":{"entrypoint":{"argv":["x"]},"new":{}}})", json::Unknown::ignore);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->id.value, "j-x");
}

TEST(Gang, head_first_then_workers_by_group) {
  const std::map<std::string, Flavor> flavors{{"head", {FlavorId("head"), {{500}, 2_GiB, 1_GiB, 0}}},
                                              {"gpu", {FlavorId("gpu"), {{4000}, 8_GiB, 2_GiB, 1}}}};
  JobSpec spec;
  spec.head.flavor = "head";
  spec.workers = {{"a", 2, "gpu"}, {"b", 1, "head"}};
  const auto members = members_of(spec, flavors);
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 4U);
  EXPECT_EQ((*members)[0].role, Role::head);
  EXPECT_EQ((*members)[0].group, "head");
  EXPECT_EQ((*members)[2].index, 2);
  EXPECT_EQ((*members)[2].group, "a");
  EXPECT_EQ((*members)[2].resources.gpus, 1);
  EXPECT_EQ((*members)[3].group, "b");
  EXPECT_EQ((*members)[3].flavor, "head");

  spec.workers[1].flavor = "gone";
  EXPECT_EQ(members_of(spec, flavors).error().code(), ErrorCode::not_found);
  EXPECT_EQ(members_of(spec, flavors).error().path(), "$.workers[1].flavor");
  spec.workers[1] = {"b", 2'000'000'000, "head"};
  EXPECT_EQ(members_of(spec, flavors).error().path(), "$.workers[1].count");
}

}  // namespace
}  // namespace helio::model
