#include "ray/activity_client.h"
#include "ray/jobs_client.h"
#include "ray/log_files.h"
#include "ray/nodes_client.h"
#include "ray/shell_quote.h"
#include "ray/start_command.h"
#include "ray/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace helio::ray {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// --- versions -------------------------------------------------------------------------------------------------------------------

TEST(Version, ReadsWhatImagesSay) {
  EXPECT_EQ(parse_version("2.60.0"), (Version{2, 60, 0}));
  EXPECT_EQ(parse_version("2.9.3"), (Version{2, 9, 3}));
  EXPECT_EQ(parse_version("2.31.0rc1"), (Version{2, 31, 0}));
  EXPECT_EQ(parse_version("3.0"), (Version{3, 0, 0}));
  EXPECT_FALSE(parse_version("nightly"));
  EXPECT_FALSE(parse_version(""));
  EXPECT_LT(*parse_version("2.9.3"), *parse_version("2.30.0"));
}

// --- activity -------------------------------------------------------------------------------------------------------------------

TEST(Activity, JobsAndDriversThatRunOrWaitKeepAClusterBusy) {
  const auto idle = parse_jobs_activity(
      R"([{"type":"SUBMISSION","status":"SUCCEEDED","end_time":1700000005000},{"type":"DRIVER","status":"FAILED","end_time":1700000001000}])");
  ASSERT_TRUE(idle);
  EXPECT_FALSE(idle->busy);
  EXPECT_EQ(idle->last_end, Timestamp{1'700'000'005'000'000});
  for (const std::string status : {"RUNNING", "PENDING"}) {
    EXPECT_TRUE(parse_jobs_activity(R"([{"type":"DRIVER","status":")" + status + R"(","end_time":null}])")->busy) << status;
  }
  EXPECT_FALSE(parse_jobs_activity("[]")->last_end);
  EXPECT_FALSE(parse_jobs_activity(R"({"error":"x"})")) << "what cannot be read is not idle";
}

TEST(Activity, AnyActorThatIsNotDeadKeepsItBusy) {
  EXPECT_EQ(parse_any_actor(R"({"result":true,"data":{"result":{"total":3,"result":[]}}})"), false);
  EXPECT_EQ(parse_any_actor(R"({"result":true,"data":{"result":{"total":3,"result":[{"actor_id":"a","state":"ALIVE"}]}}})"), true);
  EXPECT_FALSE(parse_any_actor(R"({"result":false,"msg":"no"})"));
}

// --- shell quoting --------------------------------------------------------------------------------------------------------------

std::string run_shell(const std::string& line) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
  std::string out;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;) out.append(buffer.data(), n);
  return out;
}

TEST(ShellQuote, EveryWordArrivesVerbatim) {
  const std::vector<std::string> words{"plain", "",    "two words", "$HOME", "`id`", "a'b", "\"q\"", "back\\slash", "new\nline", "*",
                                       "~",     "A=b", "!",         "ünï",   "-n",   "#",   ";",     "a&&b",        "(x)",       "{1,2}"};
  std::vector<std::string> argv{"printf", "<%s>"};
  argv.insert(argv.end(), words.begin(), words.end());
  std::string expected;
  for (const auto& word : words) expected += "<" + word + ">";
  EXPECT_EQ(run_shell(shell_join(argv)), expected);
}

TEST(ShellQuote, LeavesPlainWordsAlone) {
  const std::vector<std::string> argv{"python", "train.py", "--lr", "0.1"};
  EXPECT_EQ(shell_join(argv), "python train.py --lr 0.1");
}

TEST(ShellQuote, FirstWordIsACommandEvenWithAnEqualsSign) {
  const std::vector<std::string> argv{"A=b", "c"};
  EXPECT_EQ(shell_join(argv), "'A=b' c");
}

// --- start command --------------------------------------------------------------------------------------------------------------

StartSpec spec_of(bool head, const std::string& version) {
  StartSpec spec;
  spec.head = head;
  spec.prefix = "/images/p";
  spec.ray_version = version;
  spec.temp_dir = "/tmp/hs0/a/h";
  spec.work_dir = "/home/u/node";
  spec.address = head ? "127.9.0.2" : "127.9.0.3";
  spec.head_address = "127.9.0.2";
  spec.ports = {head ? 12000 : 12100};
  spec.head_ports = {12000};
  spec.node = "a-1-h";
  spec.group = "head";
  spec.num_cpus = 0.5;
  spec.memory = 1_GiB;
  spec.object_store_memory = 300_MiB;
  spec.resources = {{"fast", 1}};
  spec.labels = {{"zone", "b"}};
  spec.env = {{"PATH", "/opt/bin:/bin"},
              {"USER_VAR", "x"},
              {"RAY_ADDRESS", "evil:1"},
              {"RAY_AUTH_TOKEN", "evil"},
              {"RAY_DATA_PUSH_BASED_SHUFFLE", "1"}};
  spec.token_file = "/home/u/node/ray.token";
  spec.dashboard_full = false;
  spec.stop_grace = Duration(29500ms);
  return spec;
}

TEST(StartCommand, HeadOfANewVersion) {
  const auto command = start_command(spec_of(true, "2.60.0"));
  ASSERT_TRUE(command) << command.error().text();
  EXPECT_EQ(command->argv[0], "/images/p/bin/ray");
  for (const char* flag : {"--head",
                           "--block",
                           "--node-ip-address=127.9.0.2",
                           "--port=12000",
                           "--dashboard-port=12001",
                           "--dashboard-host=127.0.0.1",
                           "--ray-client-server-port=12002",
                           "--dashboard-agent-listen-port=12003",
                           "--dashboard-agent-grpc-port=12004",
                           "--runtime-env-agent-port=12005",
                           "--metrics-export-port=12006",
                           "--object-manager-port=12007",
                           "--node-manager-port=12008",
                           "--min-worker-port=12020",
                           "--max-worker-port=12099",
                           "--num-cpus=0.5",
                           "--num-gpus=0",
                           "--memory=1073741824",
                           "--object-store-memory=314572800",
                           "--labels=heliostat.io/node=a-1-h,zone=b",
                           "--no-monitor",
                           "--temp-dir=/tmp/hs0/a/h",
                           "--include-dashboard=true",
                           "--disable-usage-stats"}) {
    EXPECT_THAT(command->argv, Contains(flag));
  }
  EXPECT_THAT(command->argv, Not(Contains(StartsWith("--include-log-monitor"))));
  for (const char* variable :
       {"PATH=/images/p/bin:/opt/bin:/bin", "USER_VAR=x", "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH=/home/u/node/ray.token",
        "RAY_CLOUD_INSTANCE_ID=a-1-h", "RAY_NODE_TYPE_NAME=head", "RAY_USAGE_STATS_ENABLED=0", "DASHBOARD_METRIC_PORT=12009",
        "AUTOSCALER_METRIC_PORT=12010", "RAY_health_check_period_ms=1000", "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0",
        "RAY_JOB_STOP_WAIT_TIME_S=30", "RAY_DATA_PUSH_BASED_SHUFFLE=1", "HOME=/home/u/node"}) {
    EXPECT_THAT(command->env, Contains(variable));
  }
  EXPECT_THAT(command->env, Not(Contains(StartsWith("RAY_ADDRESS="))));
  EXPECT_THAT(command->env, Not(Contains(StartsWith("RAY_AUTH_TOKEN="))));
  EXPECT_THAT(command->exec_env, Contains("RAY_ADDRESS=127.9.0.2:12000"));
}

TEST(StartCommand, HookIsForRayStartAlone) {
  const auto command = start_command(spec_of(true, "2.60.0"));
  ASSERT_TRUE(command);
  EXPECT_EQ(command->hook_path, "/home/u/node/start_hook/heliostat_start_hook.py");
  EXPECT_THAT(command->env, Contains("RAY_START_HOOK=heliostat_start_hook.trim"));
  EXPECT_THAT(command->exec_env, Not(Contains(StartsWith("RAY_START_HOOK="))));
  EXPECT_THAT(command->exec_env, Not(Contains(StartsWith("PYTHONPATH="))));
  EXPECT_THAT(command->client_server,
              ElementsAre("/images/p/bin/python", "-c", HasSubstr("MIN_SPECIFIC_SERVER_PORT"), "23480", "--address=127.9.0.2:12000",
                          "--host=127.9.0.2", "--port=12002", "--mode=proxy", "--runtime-env-agent-address=http://127.9.0.2:12005"));
  StartSpec neighbour = spec_of(true, "2.60.0");
  neighbour.ports = {12100};
  EXPECT_EQ(start_command(neighbour)->client_server[3], "23484");
  StartSpec full = spec_of(true, "2.60.0");
  full.dashboard_full = true;
  EXPECT_EQ(start_command(full)->hook_path, "");
  EXPECT_THAT(start_command(full)->client_server, IsEmpty()) << "`ray start` starts it itself";
  EXPECT_EQ(start_command(spec_of(true, "2.59.0"))->hook_path, "") << "only for the version that it was tested with";
  EXPECT_EQ(start_command(spec_of(false, "2.60.0"))->hook_path, "");
}

TEST(StartCommand, WorkerJoinsItsHead) {
  StartSpec spec = spec_of(false, "2.60.0");
  spec.log_monitor = false;
  const auto command = start_command(spec);
  ASSERT_TRUE(command);
  for (const char* flag : {"--address=127.9.0.2:12000", "--node-ip-address=127.9.0.3", "--temp-dir=/tmp/hs0/a/h",
                           "--node-manager-port=12108", "--include-log-monitor=false", "--resources={\"fast\":1E0}"}) {
    EXPECT_THAT(command->argv, Contains(flag));
  }
  for (const char* prefix : {"--head", "--port", "--dashboard-port", "--include-dashboard", "--no-monitor", "--ray-client-server-port"}) {
    EXPECT_THAT(command->argv, Not(Contains(StartsWith(prefix)))) << "a worker that is given one aborts";
  }
  EXPECT_THAT(command->env, Not(Contains(StartsWith("DASHBOARD_METRIC_PORT"))));
}

TEST(StartCommand, OldVersionsKnowLess) {
  StartSpec spec = spec_of(false, "2.9.3");
  spec.log_monitor = false;
  const auto command = start_command(spec);
  ASSERT_TRUE(command);
  EXPECT_THAT(command->argv, Not(Contains(StartsWith("--temp-dir"))));
  EXPECT_THAT(command->argv, Not(Contains(StartsWith("--include-log-monitor"))));
  EXPECT_THAT(command->argv, Contains("--labels={\"zone\":\"b\"}"));
  EXPECT_THAT(command->argv, Contains("--node-name=a-1-h"));
  EXPECT_THAT(command->env, Contains("RAY_AUTH_MODE=disabled"));
  EXPECT_THAT(command->env, Not(Contains(StartsWith("RAY_AUTH_TOKEN_PATH"))));
}

TEST(StartCommand, TooOldOrUnreadable) {
  EXPECT_EQ(start_command(spec_of(true, "2.5.1")).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(start_command(spec_of(true, "x")).error().code(), ErrorCode::invalid_argument);
}

// --- jobs -----------------------------------------------------------------------------------------------------------------------

TEST(Jobs, BodyHoldsOnlyWhatIsAskedFor) {
  SubmitRequest request{.submission_id = "a-1",
                        .entrypoint = "python x.py",
                        .runtime_env = {},
                        .metadata = {},
                        .num_cpus = 0.0,
                        .num_gpus = {},
                        .memory = 0,
                        .resources = {}};
  EXPECT_EQ(json::dump(submit_body(request)), R"({"submission_id":"a-1","entrypoint":"python x.py"})");
  request.num_cpus = 1;
  request.metadata = {{"k", "v"}};
  request.runtime_env = json::Object{{"pip", json::Array{"x"}}};
  EXPECT_EQ(
      json::dump(submit_body(request)),
      R"({"submission_id":"a-1","entrypoint":"python x.py","runtime_env":{"pip":["x"]},"metadata":{"k":"v"},"entrypoint_num_cpus":1E0})");
}

TEST(Jobs, RecordOfEachKind) {
  const auto done = parse_job(
      R"({"status":"FAILED","message":"m","error_type":"JOB_ENTRYPOINT_COMMAND_ERROR","driver_exit_code":3,"driver_node_id":"ab"})");
  ASSERT_TRUE(done);
  EXPECT_EQ(done->exit_code, 3);
  EXPECT_EQ(done->driver_node_id, "ab");
  const auto old = parse_job(
      R"({"status":"FAILED","message":"Job entrypoint command failed with exit code 7, last","error_type":null,"driver_exit_code":null})");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->exit_code, 7);
  EXPECT_EQ(old->error_type, "");
  EXPECT_EQ(parse_job(R"({"status":"SUCCEEDED","driver_exit_code":null})")->exit_code, 0);
  EXPECT_FALSE(parse_job(R"({"status":"STOPPED","driver_exit_code":null})")->exit_code);
  EXPECT_FALSE(parse_job("[]"));
  EXPECT_FALSE(parse_job("{}"));
}

TEST(Jobs, UploadsAreRenamedEverywhereElseNothing) {
  json::Object env{{"working_dir", "helio://packages/aa.zip"},
                   {"py_modules", json::Array{"helio://packages/bb.zip", "s3://x/y.zip"}},
                   {"env_vars", json::Object{{"A", "helio://packages/aa.zip"}}}};
  rewrite_packages(env, {{"helio://packages/aa.zip", "gcs://A.zip"}, {"helio://packages/bb.zip", "gcs://B.zip"}});
  EXPECT_EQ(json::dump(env),
            R"({"working_dir":"gcs://A.zip","py_modules":["gcs://B.zip","s3://x/y.zip"],"env_vars":{"A":"helio://packages/aa.zip"}})");
  EXPECT_EQ(package_name("0123456789abcdef0123"), "_ray_pkg_0123456789abcdef.zip");
}

TEST(Nodes, RowsByLabelOrName) {
  const auto rows = parse_nodes(R"({"result":true,"msg":"","data":{"result":{"total":2,"result":[
      {"node_id":"aa","state":"ALIVE","is_head_node":true,"node_name":"127.9.0.2","labels":{"heliostat.io/node":"a-1-h"}},
      {"node_id":"bb","state":"DEAD","state_message":"gone","is_head_node":false,"node_name":"a-1-w1","labels":{}}]}}})");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].node, "a-1-h");
  EXPECT_TRUE((*rows)[0].alive);
  EXPECT_TRUE((*rows)[0].head);
  EXPECT_EQ((*rows)[1].node, "a-1-w1");
  EXPECT_FALSE((*rows)[1].alive);
  EXPECT_FALSE(parse_nodes("{}"));
  EXPECT_FALSE(parse_nodes("<html>"));
}

// --- logs -----------------------------------------------------------------------------------------------------------------------

struct LogCase {
  const char* file;
  const char* stream;  ///< null: not shipped
  const char* kind;
  int rotation;
};
class LogNames : public testing::TestWithParam<LogCase> {};
TEST_P(LogNames, AreClassified) {
  const LogCase& c = GetParam();
  const auto log = classify_log(c.file, "a-1");
  ASSERT_EQ(log.has_value(), c.stream != nullptr) << c.file;
  if (!log) return;
  EXPECT_EQ(log->stream, c.stream);
  EXPECT_EQ(log->kind, c.kind);
  EXPECT_EQ(log->rotation, c.rotation);
}
INSTANTIATE_TEST_SUITE_P(Files, LogNames,
                         testing::Values(LogCase{"job-driver-a-1.log", "driver", "driver", 0},
                                         LogCase{"job-driver-other.log", "job-driver-other.log", "driver", 0},
                                         LogCase{"worker-ab-01000000-77.out", "worker-ab-01000000-77.out", "worker", 0},
                                         LogCase{"worker-ab-01000000-77.err.1", "worker-ab-01000000-77.err", "worker", 1},
                                         LogCase{"raylet.out", "raylet.out", "ray", 0}, LogCase{"raylet.out.5", "raylet.out", "ray", 5},
                                         LogCase{"gcs_server.err", "gcs_server.err", "ray", 0},
                                         LogCase{"ray_process_exit.log", "ray_process_exit.log", "ray", 0},
                                         LogCase{"runtime_env_setup-01000000.log", "runtime_env_setup-01000000.log", "ray", 0},
                                         LogCase{"dashboard_agent.log", "dashboard_agent.log", "ray", 0},
                                         LogCase{"supervisor-a-1.log", "supervisor-a-1.log", "ray", 0},
                                         LogCase{"python-core-driver-1.log", nullptr, "", 0}, LogCase{"worker-ab.log", nullptr, "", 0},
                                         LogCase{"debug_state.txt", nullptr, "", 0}, LogCase{"events", nullptr, "", 0}));

TEST(Logs, NewestSessionByListing) {
  std::string root = testing::TempDir() + "sessionXXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  EXPECT_EQ(find_session(root).error().code(), ErrorCode::not_found);
  std::filesystem::create_directory(root + "/session_2026-01-01_00-00-00_000001_10");
  std::filesystem::create_directory(root + "/session_2026-01-02_00-00-00_000001_9");
  std::filesystem::create_directory_symlink("/elsewhere", root + "/session_latest");
  EXPECT_EQ(*find_session(root), root + "/session_2026-01-02_00-00-00_000001_9");
  std::filesystem::remove_all(root);
}

TEST(Logs, RaysOwnLines) {
  EXPECT_TRUE(is_rays_own_line("2026-01-01 00:00:00,000\tINFO job_manager.py:1 -- Runtime env is setting up."));
  EXPECT_TRUE(is_rays_own_line("Running entrypoint for job a-1: python x.py"));
  EXPECT_FALSE(is_rays_own_line("hello"));
}

}  // namespace
}  // namespace helio::ray
