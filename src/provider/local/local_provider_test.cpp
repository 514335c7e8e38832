#include "provider/local/local_provider.h"

#include "proc/files.h"
#include "proc/sys_info.h"
#include "provider/local/launch.h"
#include "provider/local/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace helio::provider {
namespace {

using model::ProviderState;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kDeadline = std::chrono::seconds(30);

template <class F>
bool eventually(F condition) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    usleep(2000);
  }
  return condition();
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

class LocalProviderTest : public testing::Test {
 protected:
  LocalProviderTest() {
    std::string pattern = "/tmp/hl-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    home_.root = folder_ + "/home";
    EXPECT_TRUE(proc::make_folders(home_.root));
    settings_.session_root = folder_ + "/s";
    settings_.virtual_gpus = 2;
    loop_.start();
    open();
  }
  ~LocalProviderTest() override {
    open({.sweep_spares = 0s});
    EXPECT_TRUE(provider_->sweep({}));
    EXPECT_TRUE(eventually([&] { return provider_->list().value().empty() && tagged().empty(); }));
    EXPECT_TRUE(provider_->sweep({}));
    provider_.reset();
    loop_.stop();
    EXPECT_THAT(proc::make_cgroup_driver(cgroup_parent())->list(), IsEmpty());
    EXPECT_TRUE(proc::wipe(folder_));
  }

  /// A daemon that starts, or starts again.
  void open(LocalOptions options = {}) {
    provider_.reset();
    provider_ = std::make_unique<LocalProvider>(loop_, clock_, home_, settings_, agent_, std::move(options));
    provider_->observe([this, provider = provider_.get()](const NodeId& node, const model::ProviderFact& fact) {
      const auto final = provider->final_status(node);  // by its own pointer: provider_ is empty while it is destroyed
      const std::lock_guard lock(mutex_);
      facts_.push_back({.node = node, .fact = fact});
      if (final) finals_.push_back(*final);
      changed_.notify_all();
    });
  }
  [[nodiscard]] local::Places places() const { return {home_, *settings_.session_root}; }
  [[nodiscard]] std::string cgroup_parent() const { return places().cgroup_parent(); }

  NodeSpec spec(const std::string& id, std::int32_t index = 0, const std::string& mode = "", std::int32_t slot = 1) {
    const auto plan = provider_->plan_node(slot, index, taken_);
    EXPECT_TRUE(plan) << plan.error().text();
    taken_.push_back(plan->port_base);
    NodeSpec spec;
    model::Assignment& a = spec.assignment;
    a.node = NodeId(id);
    a.generation = 1;
    a.role = index == 0 ? model::Role::head : model::Role::worker;
    a.index = index;
    a.ray_version = "2.60.0";
    a.temp_dir = plan->temp_dir;
    a.head_temp_dir = plan->head_temp_dir;
    a.work_dir = plan->work_dir;
    a.ray_token_file = plan->ray_token_file;
    a.port_base = plan->port_base;
    a.cgroup = plan->cgroup;
    a.env["TEST_MODE"] = mode;
    spec.limits = {.cpu = {1000}, .memory = 256_MiB};
    spec.agent_token = "agent-secret";
    spec.ray_token = "ray-secret";
    spec.daemon_url = "ws://127.0.0.1:1/agent/v1";
    return spec;
  }
  NodeId start(const NodeSpec& spec) {
    EXPECT_TRUE(provider_->ensure(spec));
    EXPECT_TRUE(wait_for(spec.assignment.node, ProviderState::running));
    EXPECT_TRUE(eventually([&] { return std::ranges::count(lines("starts"), spec.assignment.node.str()) > 0; }));
    return spec.assignment.node;
  }
  std::optional<model::ProviderFact> wait_for(const NodeId& node, ProviderState state) {
    std::unique_lock lock(mutex_);
    std::optional<model::ProviderFact> found;
    changed_.wait_for(lock, kDeadline, [&] {
      for (const NodeFact& fact : facts_) {
        if (fact.node == node && fact.fact.state == state) found = fact.fact;
      }
      return found.has_value();
    });
    return found;
  }
  bool heard(const NodeId& node, ProviderState state) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(facts_, [&](const NodeFact& f) { return f.node == node && f.fact.state == state; });
  }
  std::optional<model::ProviderFact> listed(const NodeId& node) {
    for (const NodeFact& fact : provider_->list().value()) {
      if (fact.node == node) return fact.fact;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
    const std::string text = proc::read_file(home_.root + "/" + name).value_or("");
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }
  [[nodiscard]] std::vector<proc::TaggedProcess> tagged() const {
    auto all = proc::tagged_processes();
    std::erase_if(all, [&](const proc::TaggedProcess& p) { return p.home != places().home_id(); });
    return all;
  }
  static proc::ProcessRecord record_of(const NodeSpec& spec) {
    return proc::read_record(local::NodeFolder{spec.assignment.work_dir}.record()).value();
  }
  static void kill_agent(const NodeSpec& spec) {
    const auto record = record_of(spec);
    ASSERT_TRUE(proc::signal_process(record.pid, record.start_ticks, SIGKILL));
  }
  void expect_nothing_left(const NodeSpec& spec) {
    EXPECT_FALSE(exists(spec.assignment.work_dir));
    EXPECT_FALSE(exists(spec.assignment.temp_dir));
    if (!spec.assignment.cgroup.empty()) EXPECT_FALSE(exists(spec.assignment.cgroup));
    EXPECT_TRUE(local::ports_are_free(spec.assignment.port_base));
    EXPECT_FALSE(listed(spec.assignment.node));
    for (const auto& process : tagged()) EXPECT_NE(process.node, spec.assignment.node.str());
  }

  std::string folder_;
  model::Home home_;
  model::PoolSettings settings_;
  std::string agent_ = HELIO_TEST_AGENT;
  rt::EventLoop loop_;
  SystemClock clock_;
  std::vector<std::int32_t> taken_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NodeFact> facts_;
  std::vector<model::AgentStatus> finals_;
  std::unique_ptr<LocalProvider> provider_;
};

TEST_F(LocalProviderTest, EnsureTwiceStartsOnceAndHandsOverNewerAssignments) {
  NodeSpec node = spec("n-h");
  ASSERT_TRUE(provider_->ensure(node));
  EXPECT_TRUE(listed(node.assignment.node)) << "known from the call on";
  start(node);
  const local::NodeFolder folder{node.assignment.work_dir};
  for (const std::string& file : {folder.assignment(), folder.token(), folder.ray_token()}) {
    struct stat info{};
    ASSERT_EQ(stat(file.c_str(), &info), 0) << file;
    EXPECT_EQ(info.st_mode & 0777U, 0600U) << file;
  }
  EXPECT_EQ(proc::read_file(folder.token()).value_or(""), "agent-secret");
  EXPECT_EQ(proc::read_file(folder.ray_token()).value_or(""), "ray-secret");
  const auto launch = json::parse_as<local::LaunchRecord>(proc::read_file(folder.launch()).value());
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->daemon_file, home_.daemon_file());
  EXPECT_EQ(launch->daemon_url, node.daemon_url);

  const auto generation = [&] {
    return json::parse_as<model::Assignment>(proc::read_file(folder.assignment()).value(), json::Unknown::ignore)->generation;
  };
  node.assignment.generation = 5;
  ASSERT_TRUE(provider_->ensure(node));
  EXPECT_TRUE(eventually([&] { return generation() == 5; }));
  node.assignment.generation = 4;
  ASSERT_TRUE(provider_->ensure(node));
  ASSERT_TRUE(provider_->remove(node.assignment.node, {}));
  EXPECT_TRUE(wait_for(node.assignment.node, ProviderState::absent));
  EXPECT_EQ(lines("starts"), std::vector<std::string>{"n-h"});
  expect_nothing_left(node);
}

TEST_F(LocalProviderTest, RemoveLetsTheAgentLeaveAndWipesEverything) {
  const NodeSpec head = spec("n-h", 0);
  const NodeSpec worker = spec("n-w1", 1, "stubborn");
  EXPECT_NE(head.assignment.port_base, worker.assignment.port_base);
  start(head);
  start(worker);
  ASSERT_TRUE(provider_->remove(head.assignment.node, {.term = 20s}));
  const auto clean = wait_for(head.assignment.node, ProviderState::ended);
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->exit_code, 0);
  EXPECT_EQ(clean->cause, "");
  ASSERT_TRUE(wait_for(head.assignment.node, ProviderState::absent));
  expect_nothing_left(head);
  {
    const std::lock_guard lock(mutex_);
    ASSERT_FALSE(finals_.empty()) << "its last status is there when the observer hears of the end";
    EXPECT_EQ(finals_[0].sequence, 7);
  }
  ASSERT_TRUE(provider_->remove(worker.assignment.node, {.term = 10ms}));
  ASSERT_TRUE(provider_->remove(worker.assignment.node, {.term = 10ms}));
  const auto killed = wait_for(worker.assignment.node, ProviderState::ended);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->detail, "signal 9");
  EXPECT_EQ(killed->cause, "") << "what our teardown does is nobody's fault";
  ASSERT_TRUE(wait_for(worker.assignment.node, ProviderState::absent));
  expect_nothing_left(worker);
  EXPECT_FALSE(exists(std::filesystem::path(worker.assignment.temp_dir).parent_path())) << "the slot's folder goes with its last node";
}

TEST_F(LocalProviderTest, RemoveOfWhatIsNotThereSaysAbsent) {
  ASSERT_TRUE(provider_->remove(NodeId("n-none"), {}));
  EXPECT_TRUE(wait_for(NodeId("n-none"), ProviderState::absent));
}

TEST_F(LocalProviderTest, KilledAgentIsNamedItsLogsAreSavedAndItIsNeverStartedAgain) {
  const NodeSpec node = spec("n-h");
  start(node);
  kill_agent(node);
  const auto fact = wait_for(node.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kAgentDied);
  EXPECT_EQ(fact->exit_code, 128 + SIGKILL);
  EXPECT_EQ(lines("harvests"), std::vector<std::string>{"n-h"}) << "before the end is told, while its token is valid";
  EXPECT_THAT(tagged(), IsEmpty()) << "nothing outlives it";
  ASSERT_TRUE(provider_->final_status(node.assignment.node));
  EXPECT_TRUE(provider_->final_status(node.assignment.node)->logs_complete);

  ASSERT_TRUE(provider_->ensure(node));
  open();
  EXPECT_EQ(listed(node.assignment.node)->state, ProviderState::ended);
  EXPECT_EQ(listed(node.assignment.node)->cause, model::cause::kAgentDied) << "the same word after a restart";
  ASSERT_TRUE(provider_->ensure(node));
  ASSERT_TRUE(provider_->remove(node.assignment.node, {}));
  ASSERT_TRUE(wait_for(node.assignment.node, ProviderState::absent));
  EXPECT_EQ(lines("starts").size(), 1U);
  EXPECT_EQ(lines("harvests").size(), 1U);
  expect_nothing_left(node);
}

TEST_F(LocalProviderTest, AHarvestThatHangsIsCutOff) {
  open({.harvest_limit = 50ms});
  const NodeSpec node = spec("n-h", 0, "slow_harvest");
  start(node);
  kill_agent(node);
  EXPECT_TRUE(wait_for(node.assignment.node, ProviderState::ended));
}

TEST_F(LocalProviderTest, AgentThatExitsByItself) {
  const NodeSpec good = spec("n-quit", 0, "quit");
  const NodeSpec bad = spec("n-fail", 1, "fail");
  start(good);
  start(bad);
  const auto clean = wait_for(good.assignment.node, ProviderState::ended);
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->exit_code, 0);
  EXPECT_EQ(clean->cause, "");
  const auto failed = wait_for(bad.assignment.node, ProviderState::ended);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->exit_code, 3);
  EXPECT_EQ(failed->cause, model::cause::kAgentDied);
}

TEST_F(LocalProviderTest, RestartedDaemonFindsRunningNodes) {
  const NodeSpec node = spec("n-h");
  start(node);
  const pid_t pid = record_of(node).pid;
  open();
  ASSERT_TRUE(listed(node.assignment.node));
  EXPECT_EQ(listed(node.assignment.node)->state, ProviderState::running);
  ASSERT_TRUE(provider_->ensure(node));
  kill(pid, SIGKILL);
  const auto fact = wait_for(node.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kAgentDied);
  EXPECT_EQ(lines("starts").size(), 1U);

  const NodeSpec other = spec("n-w1", 1);
  start(other);
  open();
  ASSERT_TRUE(provider_->remove(other.assignment.node, {.term = 20s}));
  EXPECT_TRUE(wait_for(other.assignment.node, ProviderState::absent));
  expect_nothing_left(other);
}

TEST_F(LocalProviderTest, NodeThatEndedWhileTheDaemonWasAway) {
  const NodeSpec killed = spec("n-h");
  const NodeSpec left = spec("n-w1", 1);
  start(killed);
  start(left);
  const auto record = record_of(left);
  provider_.reset();
  kill_agent(killed);
  ASSERT_TRUE(proc::signal_process(record.pid, record.start_ticks, SIGTERM));
  ASSERT_TRUE(eventually([&] { return exists(local::NodeFolder{left.assignment.work_dir}.final_status()); }));
  ASSERT_TRUE(eventually([&] { return tagged().empty(); }));
  open();
  const auto fact = wait_for(killed.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kAgentDied);
  const auto clean = wait_for(left.assignment.node, ProviderState::ended);
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->cause, "");
  EXPECT_EQ(lines("harvests"), std::vector<std::string>{"n-h"});
}

TEST_F(LocalProviderTest, RebootIsNamed) {
  const NodeSpec node = spec("n-h");
  start(node);
  provider_.reset();
  kill_agent(node);
  ASSERT_TRUE(eventually([&] { return tagged().empty(); }));
  open({.boot_id = "00000000-0000-0000-0000-000000000000"});
  const auto fact = wait_for(node.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kHostReboot);
}

TEST_F(LocalProviderTest, MemoryLimitIsNamed) {
  NodeSpec node = spec("n-h", 0, "eat");
  if (node.assignment.cgroup.empty()) GTEST_SKIP() << provider_->capacity().value()[0].limits;
  node.limits.memory = 48_MiB;
  ASSERT_TRUE(provider_->ensure(node));
  const auto fact = wait_for(node.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kNodeOom);
  EXPECT_THAT(fact->detail, HasSubstr("memory limit"));
}

TEST_F(LocalProviderTest, WhatCannotBeMadeEndsWithItsReason) {
  agent_ = folder_ + "/no-such-agent";
  open();
  const NodeSpec node = spec("n-h");
  ASSERT_TRUE(provider_->ensure(node));
  const auto fact = wait_for(node.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kProviderFailed);
  EXPECT_THAT(fact->detail, HasSubstr("no-such-agent"));
  ASSERT_TRUE(provider_->remove(node.assignment.node, {}));
  ASSERT_TRUE(wait_for(node.assignment.node, ProviderState::absent));
  expect_nothing_left(node);

  ASSERT_TRUE(proc::write_file(agent_, "not a program", 0700));
  const NodeSpec broken = spec("n-w1", 1);
  ASSERT_TRUE(provider_->ensure(broken));
  const auto exec = wait_for(broken.assignment.node, ProviderState::ended);
  ASSERT_TRUE(exec);
  EXPECT_EQ(exec->cause, model::cause::kProviderFailed);
  EXPECT_THAT(exec->detail, HasSubstr("exec"));

  NodeSpec outside = spec("n-w2", 2);
  outside.assignment.work_dir = folder_ + "/elsewhere";
  EXPECT_FALSE(provider_->ensure(outside));
  outside = spec("n-w3", 3);
  outside.assignment.temp_dir = "/tmp";
  EXPECT_FALSE(provider_->ensure(outside));
}

TEST_F(LocalProviderTest, APlaceIsNotGivenToTwo) {
  const NodeSpec node = spec("n-h");
  start(node);
  NodeSpec intruder = node;
  intruder.assignment.node = NodeId("n-other");
  ASSERT_TRUE(provider_->ensure(intruder));
  const auto fact = wait_for(intruder.assignment.node, ProviderState::ended);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->cause, model::cause::kProviderFailed);
  ASSERT_TRUE(provider_->remove(intruder.assignment.node, {}));
  ASSERT_TRUE(wait_for(intruder.assignment.node, ProviderState::absent));
  EXPECT_TRUE(exists(node.assignment.work_dir));
  EXPECT_FALSE(heard(node.assignment.node, ProviderState::ended));
}

TEST_F(LocalProviderTest, OldRayWorkersSeeTheirOwnFolderUnderTheHeadsPath) {
  if (proc::probe_isolation().best == proc::Isolation::sessions) GTEST_SKIP() << proc::probe_isolation().lost;
  NodeSpec head = spec("n-h", 0);
  NodeSpec worker = spec("n-w1", 1);
  for (NodeSpec* node : {&head, &worker}) {
    node->assignment.ray_version = "2.9.3";
    start(*node);
  }
  EXPECT_EQ(proc::read_file(head.assignment.temp_dir + "/seen").value_or(""), "n-h\n");
  EXPECT_EQ(proc::read_file(worker.assignment.temp_dir + "/seen").value_or(""), "n-w1\n");
}

TEST_F(LocalProviderTest, WithoutNamespacesWhatANodeLeavesBehindIsEndedByItsTag) {
  open({.isolation = proc::Isolation::sessions});
  EXPECT_THAT(provider_->capacity().value()[0].isolation, HasSubstr("process groups ("));
  const NodeSpec node = spec("n-h");
  start(node);
  EXPECT_TRUE(eventually([&] { return tagged().size() == 2; })) << "the agent and its grandchild";
  kill_agent(node);
  ASSERT_TRUE(wait_for(node.assignment.node, ProviderState::ended));
  EXPECT_THAT(tagged(), IsEmpty());
}

TEST_F(LocalProviderTest, SweepEndsWhatNobodyKnowsAndNothingElse) {
  const NodeSpec known = spec("n-known", 0, "", 1);
  const NodeSpec orphan = spec("n-orphan", 0, "", 2);
  start(known);
  start(orphan);
  // A process whose folder is gone, one of another home, a session folder, a half-made node folder, a cgroup.
  const auto sleeper = [&](const std::string& home) {
    const proc::SpawnOptions options{.argv = {"sleep", "1000"},
                                     .env = {"PATH=/usr/bin:/bin", "RAY_CLOUD_INSTANCE_ID=n-stray", "HELIOSTAT_HOME_ID=" + home}};
    return proc::spawn(loop_, options, nullptr).value();
  };
  const auto ours = sleeper(places().home_id());
  const auto theirs = sleeper("0123456789abcdef");
  struct KillAtEnd {
    std::shared_ptr<proc::Process> process;
    ~KillAtEnd() { static_cast<void>(process->signal(SIGKILL)); }
  } const guards[] = {{ours}, {theirs}};  // a failing assertion leaves nothing running
  const std::string stray_session = places().session_folder() + "/77/3";
  ASSERT_TRUE(proc::make_folders(stray_session + "/session_x"));
  const std::string stray_folder = home_.nodes() + "/88-0";
  ASSERT_TRUE(proc::make_folders(stray_folder));
  const auto driver = proc::make_cgroup_driver(cgroup_parent());
  ASSERT_TRUE(driver->create("99-0", {}));

  const auto spared = provider_->sweep({known.assignment.node});
  ASSERT_TRUE(spared);
  EXPECT_THAT(*spared, Not(Contains("node n-orphan"))) << "its caller's list may be older than the node";
  EXPECT_THAT(*spared, Contains("folder " + stray_session));
  EXPECT_THAT(*spared, Contains("folder " + stray_folder));
  EXPECT_TRUE(eventually([&] { return !ours->signal(0).has_value(); }));
  EXPECT_TRUE(theirs->signal(0)) << "never another home's";
  if (driver->kind() != proc::CgroupKind::none) EXPECT_THAT(driver->list(), Not(Contains("99-0")));

  open({.sweep_spares = 0s});
  const auto found = provider_->sweep({known.assignment.node});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, std::vector<std::string>{"node n-orphan"});
  ASSERT_TRUE(wait_for(orphan.assignment.node, ProviderState::absent));
  expect_nothing_left(orphan);
  EXPECT_EQ(listed(known.assignment.node)->state, ProviderState::running);
  EXPECT_THAT(lines("harvests"), IsEmpty());
}

TEST_F(LocalProviderTest, PlansAndCapacity) {
  const auto head = provider_->plan_node(9, 0, {});
  ASSERT_TRUE(head) << head.error().text();
  const auto worker = provider_->plan_node(9, 1, {head->port_base});
  ASSERT_TRUE(worker);
  EXPECT_NE(worker->port_base, head->port_base);
  EXPECT_EQ(worker->head_port_base, head->port_base);
  EXPECT_EQ(worker->head_temp_dir, head->temp_dir);
  EXPECT_EQ(worker->head_address, head->address);
  EXPECT_LE(worker->temp_dir.size(), 38U);
  EXPECT_FALSE(provider_->plan_node(-1, 0, {}));
  settings_.session_root = "/tmp/a-folder-with-a-very-long-name";
  open();
  const auto too_long = provider_->plan_node(9, 0, {});
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message(), HasSubstr("session_root"));
  settings_.session_root = folder_ + "/s";
  open();

  const auto hosts = provider_->capacity();
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 1U);
  const model::Host& host = (*hosts)[0];
  EXPECT_EQ(host.capacity.cpu.n, proc::cpu_count() * 4000);
  EXPECT_GT(host.capacity.memory.n, 0);
  EXPECT_GE(host.capacity.gpus, 2);
  EXPECT_EQ(host.gpus.back().model, "virtual");
  EXPECT_TRUE(host.gpus.back().is_virtual);
  EXPECT_FALSE(host.isolation.empty());
  EXPECT_FALSE(host.limits.empty());
}

TEST_F(LocalProviderTest, AnUpgradeTouchesNoRunningNode) {
  agent_ = folder_ + "/helio-agent";
  std::filesystem::copy_file(HELIO_TEST_AGENT, agent_);
  open();
  const NodeSpec node = spec("n-h");
  start(node);
  const auto program = [&] { return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", record_of(node).pid)).string(); };
  const std::string before = program();
  EXPECT_THAT(before, HasSubstr(home_.root + "/agents/"));
  ASSERT_TRUE(proc::write_file(agent_, proc::read_file(HELIO_TEST_AGENT).value() + "newer", 0700));
  open();
  EXPECT_EQ(program(), before);
  EXPECT_TRUE(exists(before));
  ASSERT_TRUE(provider_->remove(node.assignment.node, {.term = 20s}));
  ASSERT_TRUE(wait_for(node.assignment.node, ProviderState::absent));
  open();
  EXPECT_FALSE(exists(before)) << "no node runs the old one any more";
}

}  // namespace
}  // namespace helio::provider
