// What needs a store: the view, admission, assignments, retention.

#include "base/hash.h"
#include "control/assignment.h"
#include "control/orphans.h"
#include "control/retention.h"
#include "control/scheduling.h"
#include "control/view.h"
#include "control/write.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>
#include <set>

namespace helio::control {
namespace {

class PlainSealer final : public Sealer {
 public:
  [[nodiscard]] std::string seal(std::string_view clear) const override { return "sealed:" + std::string(clear); }
  [[nodiscard]] Result<std::string> open(std::string_view sealed) const override { return std::string(sealed.substr(7)); }
};

/// Plans nodes and offers one host; the rest is not asked here.
class PlanningProvider final : public provider::Provider {
 public:
  Result<provider::NodePlan> plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) override {
    if (out_of_ports) return fail(ErrorCode::resource_exhausted, "no free ports");
    provider::NodePlan plan;
    plan.temp_dir = fmt::format("/tmp/hs/{}/{}", slot, index);
    plan.work_dir = fmt::format("/work/{}/{}", slot, index);
    plan.ray_token_file = plan.work_dir + "/token";
    plan.address = fmt::format("127.1.{}.{}", slot, index + 2);
    plan.head_address = fmt::format("127.1.{}.2", slot);
    plan.port_base = 12000 + static_cast<std::int32_t>(taken.size()) * 100;
    plan.head_port_base = plan.port_base - index * 100;
    return plan;
  }
  Result<void> ensure(const provider::NodeSpec&) override { return {}; }
  Result<void> remove(const NodeId&, provider::Grace) override { return {}; }
  Result<std::vector<provider::NodeFact>> list() override { return std::vector<provider::NodeFact>{}; }
  Result<std::vector<model::Host>> capacity() override { return hosts; }
  void observe(Observer) override {}
  Result<std::vector<std::string>> sweep(const std::vector<NodeId>&) override { return std::vector<std::string>{}; }

  std::vector<model::Host> hosts;
  bool out_of_ports = false;
};

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = store::open_sqlite({.path = ":memory:", .clock = clock_, .inline_mode = true, .memory = nullptr});
    ASSERT_TRUE(opened) << opened.error().text();
    store_ = std::move(*opened);
    lease_ = store_->take_lease("test").value();
    model::Host host;
    host.id = HostId("local");
    host.capacity = {MilliCpu{8000}, 32_GiB, 16_GiB, 4};
    for (std::int32_t i = 0; i < 4; ++i) host.gpus.push_back({i, "H200", 141_GiB, false});
    provider_.hosts = {host};
    ASSERT_TRUE(record_hosts(*store_, lease_, provider_, clock_.now()));
    put_flavor("head", {MilliCpu{1000}, 4_GiB, 2_GiB, 0});
    put_flavor("gpu", {MilliCpu{2000}, 8_GiB, 1_GiB, 2});
    model::Image image;
    image.name = ImageId("default");
    image.prefix = "/opt/ray";
    image.ray_version = "2.60.0";
    put(image);
  }

  template <class T>
  void put(T& row) {
    ASSERT_TRUE(store_->write([&](store::WriteTx& tx) { return tx.put(row, control_event(clock_.now(), {}, "test", "")); }));
  }
  void put_flavor(const std::string& name, model::Resources resources) {
    model::Flavor flavor;
    flavor.name = FlavorId(name);
    flavor.resources = resources;
    put(flavor);
  }
  model::Job queue(const std::string& id, std::int32_t workers) {
    model::Job job;
    job.id = JobId(id);
    job.created = job.state_since = clock_.now();
    job.queued_since = clock_.now();
    job.reason = "waiting";
    job.spec.name = "train";
    job.spec.entrypoint.argv = {"python", "train.py", "--name", "it's"};
    job.spec.head.flavor = "head";
    if (workers > 0) {
      model::WorkerGroup group;
      group.count = workers;
      group.flavor = "gpu";
      group.labels = {{"zone", "a"}};
      job.spec.workers = {group};
    }
    put(job);
    clock_.advance(1ms);
    return job;
  }
  /// Decides until nothing more can be admitted, as the loop does.
  void admit_all() {
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(view_.refresh(*store_));
      const SchedulingOutcome outcome = scheduling_.step(view_, clock_.now());
      for (const Admission& admission : outcome.admissions) ASSERT_TRUE(write(*store_, lease_, admission.transaction, clock_.now()));
      for (const Transaction& reason : outcome.reasons) ASSERT_TRUE(write(*store_, lease_, reason, clock_.now()));
      if (outcome.admissions.empty()) return;
    }
  }
  model::Assignment assignment(const std::string& node) {
    auto built = build_assignment(*store_, {sealer_, settings_, home_, interface_}, NodeId(node));
    EXPECT_TRUE(built) << built.error().text();
    return built ? *built : model::Assignment{};
  }

  ManualClock clock_;
  SeededRng rng_{7};
  PlainSealer sealer_;
  PlanningProvider provider_;
  model::Settings settings_;
  model::Home home_{"/home/u/.heliostat"};
  std::string interface_;
  std::unique_ptr<store::Store> store_;
  store::Lease lease_;
  View view_;
  Scheduling scheduling_{provider_, sealer_, rng_};
};

TEST_F(StoreTest, AdmissionWritesTheWholeGangAndItsSecretsAtOnce) {
  queue("j-a", 2);
  admit_all();
  const auto job = store::get<model::Job>(*store_, "j-a").value();
  EXPECT_EQ(job.state, model::JobState::starting);
  EXPECT_EQ(job.attempts, 1);
  const auto attempt = store::get<model::Attempt>(*store_, "j-a-1").value();
  EXPECT_EQ(attempt.placement.size(), 3U);
  const auto head = store::get<model::Node>(*store_, "j-a-1-h").value();
  EXPECT_EQ(head.desired, model::Phase::driving);
  const auto worker = store::get<model::Node>(*store_, "j-a-1-w2").value();
  EXPECT_EQ(worker.placement.gpus.size(), 2U);
  auto spec = build_node_spec(*store_, {sealer_, settings_, home_, ""}, worker.id, "ws://x");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(sha256_hex(spec->agent_token), worker.token_hash);
  EXPECT_EQ(spec->ray_token.size(), 64U);
  EXPECT_NE(spec->ray_token, spec->agent_token);
}

TEST_F(StoreTest, WhatDoesNotFitWaitsWithAReasonAndBlocksTheRest) {
  queue("j-a", 2);
  queue("j-b", 2);
  queue("j-c", 0);
  admit_all();
  EXPECT_EQ(store::get<model::Job>(*store_, "j-a")->state, model::JobState::starting);
  const auto waits = store::get<model::Job>(*store_, "j-b").value();
  EXPECT_EQ(waits.state, model::JobState::queued);
  EXPECT_NE(waits.reason.find("GPUs"), std::string::npos) << waits.reason;
  EXPECT_EQ(store::get<model::Job>(*store_, "j-c")->state, model::JobState::queued);
}

TEST_F(StoreTest, AJobWhoseFlavorIsGoneHoldsNobodyUp) {
  queue("j-a", 1);
  queue("j-b", 0);
  ASSERT_TRUE(store_->write([&](store::WriteTx& tx) { return tx.remove<model::Flavor>("gpu", control_event(clock_.now(), {}, "x", "")); }));
  admit_all();
  EXPECT_EQ(store::get<model::Job>(*store_, "j-a")->state, model::JobState::queued);
  EXPECT_NE(store::get<model::Job>(*store_, "j-a")->reason.find("gpu"), std::string::npos);
  EXPECT_EQ(store::get<model::Job>(*store_, "j-b")->state, model::JobState::starting);
}

TEST_F(StoreTest, WithoutPortsNothingIsWrittenAndItIsTriedAgain) {
  queue("j-a", 0);
  provider_.out_of_ports = true;
  ASSERT_TRUE(view_.refresh(*store_));
  const SchedulingOutcome outcome = scheduling_.step(view_, clock_.now());
  EXPECT_TRUE(outcome.admissions.empty());
  EXPECT_TRUE(outcome.again);
  ASSERT_EQ(outcome.reasons.size(), 1U);
}

TEST_F(StoreTest, AStaleDecisionIsRefusedWhole) {
  model::Job job = queue("j-a", 1);
  ASSERT_TRUE(view_.refresh(*store_));
  const SchedulingOutcome outcome = scheduling_.step(view_, clock_.now());
  job = store::get<model::Job>(*store_, "j-a").value();
  job.stop = model::StopReason::user;
  put(job);
  const auto written = write(*store_, lease_, outcome.admissions.at(0).transaction, clock_.now());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), ErrorCode::conflict);
  EXPECT_FALSE(store::get<model::Node>(*store_, "j-a-1-h"));
}

TEST_F(StoreTest, SlotsAreGivenInTurn) {
  std::set<std::int32_t> slots;
  for (int i = 0; i < 3; ++i) {
    queue("j-" + std::to_string(i), 0);
    admit_all();
    slots.insert(store::get<model::Cluster>(*store_, "c-j-" + std::to_string(i) + "-1")->slot);
  }
  EXPECT_EQ(slots, (std::set<std::int32_t>{1, 2, 3}));
}

TEST_F(StoreTest, EnvironmentOfAWorker) {
  model::Job job = queue("j-a", 2);
  job = store::get<model::Job>(*store_, "j-a").value();
  job.spec.env = {{"MODE", "fast", false}, {"PASSWORD", "***", true}, {"RANK", "99", false}};
  put(job);
  ASSERT_TRUE(store_->write([&](store::WriteTx& tx) { return tx.put_secret("job/j-a/env/PASSWORD", sealer_.seal("hunter2")); }));
  admit_all();
  const auto worker = assignment("j-a-1-w2");
  const auto& env = worker.env;
  EXPECT_EQ(env.at("MODE"), "fast");
  EXPECT_EQ(env.at("PASSWORD"), "hunter2");
  EXPECT_EQ(env.at("WORLD_SIZE"), "4");
  EXPECT_EQ(env.at("RANK"), "2");
  EXPECT_EQ(env.at("NPROC_PER_NODE"), "2");
  EXPECT_EQ(env.at("MASTER_ADDR"), "127.1.1.2");
  EXPECT_EQ(env.at("MASTER_PORT"), "29500");
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(env.at("HELIOSTAT_NODE_INDEX"), "2");
  EXPECT_EQ(env.at("HELIOSTAT_CHECKPOINT_DIR"), "/home/u/.heliostat/jobs/j-a/checkpoints");
  EXPECT_FALSE(env.contains("LOCAL_RANK"));
  EXPECT_FALSE(env.contains("NCCL_SOCKET_IFNAME"));
  EXPECT_EQ(worker.num_cpus, 2);
  EXPECT_EQ(worker.num_gpus, 2);
  EXPECT_EQ(worker.object_store_memory, 1_GiB);  // 30 % of 8 GiB, bounded by the flavor's shared memory
  EXPECT_EQ(worker.labels.at("zone"), "a");
  EXPECT_FALSE(worker.driver);
  interface_ = "eth0";
  EXPECT_EQ(assignment("j-a-1-w1").env.at("NCCL_SOCKET_IFNAME"), "eth0");
}

TEST_F(StoreTest, HeadHoldsTheDriverAndNoCpusUnlessAlone) {
  queue("j-a", 1);
  queue("j-b", 0);
  admit_all();
  const auto head = assignment("j-a-1-h");
  EXPECT_EQ(head.num_cpus, 0);
  ASSERT_TRUE(head.driver);
  EXPECT_EQ(head.driver->submission_id, "j-a-1");
  EXPECT_EQ(head.driver->entrypoint, R"(python train.py --name 'it'\''s')");
  EXPECT_EQ(head.nodes, 2);
  EXPECT_EQ(assignment("j-b-1-h").num_cpus, 1);
  EXPECT_EQ(assignment("j-b-1-h").env.at("WORLD_SIZE"), "1");
}

TEST_F(StoreTest, TheSameGenerationGivesTheSameDocument) {
  queue("j-a", 2);
  admit_all();
  EXPECT_EQ(json::encode(assignment("j-a-1-h")), json::encode(assignment("j-a-1-h")));
}

TEST_F(StoreTest, PackagesAndRequirements) {
  model::Job job = queue("j-a", 0);
  job = store::get<model::Job>(*store_, "j-a").value();
  const std::string digest(64, 'a');
  job.spec.runtime_env = json::Object{{"working_dir", "helio://packages/" + digest + ".zip"}, {"pip", json::Array{"numpy"}}};
  job.spec.requirements = {"numpy", "torch==2.4"};
  put(job);
  admit_all();
  const auto driver = assignment("j-a-1-h").driver.value();
  ASSERT_EQ(driver.packages.size(), 1U);
  EXPECT_EQ(driver.packages[0].sha256.value, digest);
  EXPECT_EQ(driver.packages[0].path, home_.package(digest));
  EXPECT_EQ(json::dump(driver.runtime_env->at("pip")), R"(["numpy","torch==2.4"])");
}

TEST(ShellLine, IsVerbatim) {
  model::Entrypoint argv;
  argv.argv = {"echo", "", "a b", "$HOME", "x=y"};
  EXPECT_EQ(shell_line(argv, ""), "echo '' 'a b' '$HOME' x=y");
  argv.argv = {"A=b", "c"};
  EXPECT_EQ(shell_line(argv, ""), "'A=b' c");
  model::Entrypoint command;
  command.command = "a | b && c";
  EXPECT_EQ(shell_line(command, ""), "a | b && c");
  model::Entrypoint script;
  script.script = "echo hi";
  EXPECT_EQ(shell_line(script, "/x y/script.sh"), "bash -e '/x y/script.sh'");
  script.language = "python";
  EXPECT_EQ(shell_line(script, "/x/script.py"), "python /x/script.py");
}

TEST_F(StoreTest, TheViewFollowsTheFeedAndForgetsWhatEnded) {
  queue("j-a", 1);
  admit_all();
  ASSERT_TRUE(view_.refresh(*store_));
  EXPECT_EQ(view_.live_nodes().size(), 2U);
  EXPECT_TRUE(view_.queue().empty());
  model::Job job = store::get<model::Job>(*store_, "j-a").value();
  job.state = model::JobState::failed;
  put(job);
  model::Attempt attempt = store::get<model::Attempt>(*store_, "j-a-1").value();
  attempt.state = model::AttemptState::failed;
  put(attempt);
  model::Cluster cluster = store::get<model::Cluster>(*store_, "c-j-a-1").value();
  ASSERT_TRUE(view_.refresh(*store_));
  ASSERT_NE(view_.find(JobId("j-a")), nullptr);  // its nodes are still there
  cluster.state = model::ClusterState::gone;
  put(cluster);
  ASSERT_TRUE(view_.refresh(*store_));
  EXPECT_EQ(view_.find(JobId("j-a")), nullptr);
  View fresh;
  ASSERT_TRUE(fresh.refresh(*store_));
  EXPECT_TRUE(fresh.aggregates().empty());
}

TEST_F(StoreTest, ARefreshCostsWhatChanged) {
  for (int i = 0; i < 300; ++i) queue("j-" + std::to_string(i), 3);
  auto first = view_.refresh(*store_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->jobs.size(), 300U);
  model::Job job = store::get<model::Job>(*store_, "j-7").value();
  job.stop = model::StopReason::user;
  put(job);
  auto second = view_.refresh(*store_);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->jobs, std::set<JobId>{JobId("j-7")});
  EXPECT_EQ(view_.queue().size(), 299U);
}

TEST_F(StoreTest, HostsKeepWhatAnAdministratorDecided) {
  auto host = store::get<model::Host>(*store_, "local").value();
  host.state = model::HostState::draining;
  host.reason = "maintenance";
  put(host);
  provider_.hosts[0].capacity.cpu = MilliCpu{16000};
  ASSERT_TRUE(record_hosts(*store_, lease_, provider_, clock_.now()));
  const auto after = store::get<model::Host>(*store_, "local").value();
  EXPECT_EQ(after.state, model::HostState::draining);
  EXPECT_EQ(after.capacity.cpu, MilliCpu{16000});
  provider_.hosts.clear();
  ASSERT_TRUE(record_hosts(*store_, lease_, provider_, clock_.now()));
  EXPECT_EQ(store::get<model::Host>(*store_, "local")->state, model::HostState::offline);
}

TEST_F(StoreTest, ALostLeaseStopsTheSweep) {
  ASSERT_TRUE(store_->take_lease("other"));
  const auto swept = sweep_orphans(*store_, lease_, provider_, {});
  ASSERT_FALSE(swept);
  EXPECT_TRUE(is_lease_lost(swept.error()));
}

/// Logs with a size per attempt.
class SizedLogs final : public store::LogStore {
 public:
  std::map<AttemptId, std::int64_t> sizes;
  std::set<AttemptId> sealed;
  Result<std::int64_t> open(const store::StreamKey&, std::string_view) override { return 0; }
  Result<std::int64_t> append(const store::StreamKey&, std::int64_t, std::string_view, Timestamp) override { return 0; }
  Result<void> mark_ended(const store::StreamKey&) override { return {}; }
  Result<void> sync(const std::vector<store::StreamKey>&) override { return {}; }
  Result<store::StreamMeta> stat(const store::StreamKey&) override { return fail(ErrorCode::not_found, ""); }
  Result<std::vector<store::StreamMeta>> list(const AttemptId& attempt) override {
    std::vector<store::StreamMeta> out;
    if (sizes.contains(attempt)) out.emplace_back().stored = sizes[attempt];
    return out;
  }
  Result<std::string> read(const store::StreamKey&, std::int64_t, std::size_t) override { return std::string(); }
  Result<std::int64_t> offset_at(const store::StreamKey&, Timestamp) override { return 0; }
  std::unique_ptr<Watch> watch(const AttemptId&, std::function<void()>) override { return nullptr; }
  Result<void> seal(const AttemptId& attempt) override {
    sealed.insert(attempt);
    return {};
  }
  Result<void> remove(const AttemptId& attempt) override {
    sizes.erase(attempt);
    return {};
  }
  Result<std::int64_t> total_bytes() override {
    std::int64_t sum = 0;
    for (const auto& [attempt, size] : sizes) sum += size;
    return sum;
  }
};

TEST_F(StoreTest, LogsGoOldestFirstWhenOverTheBudgetAndSaySo) {
  SizedLogs logs;
  settings_.keep.log_total = Bytes{250};
  for (const char* id : {"j-1", "j-2", "j-3"}) {
    model::Job job = queue(id, 0);
    job = store::get<model::Job>(*store_, id).value();
    job.state = model::JobState::failed;
    job.attempts = 1;
    job.finished = clock_.now();
    put(job);
    logs.sizes[AttemptId(std::string(id) + "-1")] = 100;
  }
  Retention retention(*store_, logs, settings_);
  const auto unused = [](const JobId&) { return false; };
  ASSERT_TRUE(retention.sweep(lease_, clock_.now(), unused));
  EXPECT_FALSE(logs.sizes.contains(AttemptId("j-1-1")));
  EXPECT_TRUE(logs.sizes.contains(AttemptId("j-2-1")));
  EXPECT_EQ(store::get<model::Job>(*store_, "j-1")->warnings.size(), 1U);
  clock_.advance(settings_.keep.logs.d + 1s);
  ASSERT_TRUE(retention.sweep(lease_, clock_.now(), [](const JobId& job) { return job == JobId("j-3"); }));
  EXPECT_FALSE(logs.sizes.contains(AttemptId("j-2-1")));
  EXPECT_TRUE(logs.sizes.contains(AttemptId("j-3-1"))) << "a cluster of it is still there";
}

}  // namespace
}  // namespace helio::control
