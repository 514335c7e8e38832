#include "proc/process.h"

#include "proc/cgroup.h"
#include "proc/file_watch.h"
#include "proc/files.h"
#include "proc/namespaces.h"
#include "proc/sys_info.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <set>

namespace helio::proc {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kDeadline = std::chrono::seconds(20);

/// A value that another thread delivers.
template <class T>
class Box {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  std::optional<T> take() {
    return wait_for([](const std::vector<T>& v) { return !v.empty(); }) ? std::optional<T>(values_.front()) : std::nullopt;
  }
  template <class F>
  bool wait_for(F ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return ready(values_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

template <class F>
bool eventually(F condition) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    usleep(2000);
  }
  return condition();
}

/// A failing assertion leaves nothing running.
struct KillAtEnd {
  std::shared_ptr<Process> process;
  ~KillAtEnd() { static_cast<void>(process->signal(SIGKILL)); }
};

class ProcTest : public testing::Test {
 protected:
  ProcTest() {
    std::string pattern = "/tmp/helio-proc-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    loop_.start();
  }
  ~ProcTest() override {
    loop_.stop();
    EXPECT_TRUE(wipe(folder_));
  }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  SpawnOptions shell(const std::string& script) {
    return {.argv = {"sh", "-c", script}, .env = {"PATH=/usr/bin:/bin", "D=" + folder_}, .stdout_file = at("out")};
  }
  std::string output() { return read_file(at("out")).value_or("(none)"); }

  std::string folder_;
  rt::EventLoop loop_;
};

TEST_F(ProcTest, ExitCodeSignalAndOutput) {
  Box<ExitStatus> end;
  SpawnOptions options = shell("echo out; echo err >&2; exit 7");
  options.stderr_file = at("err");
  ASSERT_TRUE(spawn(loop_, options, [&](ExitStatus s) { end.put(s); }));
  const auto status = end.take();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 7);
  EXPECT_FALSE(status->signalled);
  EXPECT_EQ(output(), "out\n");
  EXPECT_EQ(read_file(at("err")).value_or(""), "err\n");

  Box<ExitStatus> killed;
  auto process = spawn(loop_, shell("exec sleep 1000"), [&](ExitStatus s) { killed.put(s); });
  ASSERT_TRUE(process);
  ASSERT_TRUE((*process)->signal(SIGTERM));
  const auto signalled = killed.take();
  ASSERT_TRUE(signalled);
  EXPECT_EQ(signalled->code, 128 + SIGTERM);
  EXPECT_TRUE(signalled->signalled);
  const auto late = (*process)->signal(SIGTERM);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::not_found);
}

TEST_F(ProcTest, EnvironmentIsWhatWasGivenAndNoDescriptorLeaks) {
  setenv("HELIO_TEST_SECRET", "x", 1);
  const int leaky = socket(AF_INET, SOCK_STREAM, 0);  // without CLOEXEC, as libraries do
  ASSERT_GE(leaky, 0);
  Box<ExitStatus> end;
  ASSERT_TRUE(spawn(loop_, shell("env; ls -l /proc/self/fd"), [&](ExitStatus s) { end.put(s); }));
  ASSERT_TRUE(end.take());
  close(leaky);
  unsetenv("HELIO_TEST_SECRET");
  EXPECT_THAT(output(), Not(HasSubstr("HELIO_TEST_SECRET")));
  EXPECT_THAT(output(), HasSubstr("D=" + folder_));
  EXPECT_THAT(output(), Not(HasSubstr("socket:")));
}

TEST_F(ProcTest, FailedExecIsAnErrorAndLeavesNoZombie) {
  const std::vector<pid_t> others = children_of(getpid());  // of tests before it
  const auto missing = spawn(loop_, {.argv = {"/no/such/program"}, .env = {}}, nullptr);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::not_found);
  EXPECT_THAT(missing.error().message(), HasSubstr("/no/such/program"));
  const auto not_in_path = spawn(loop_, {.argv = {"no-such-program"}, .env = {"PATH=/usr/bin"}}, nullptr);
  ASSERT_FALSE(not_in_path);
  EXPECT_EQ(not_in_path.error().code(), ErrorCode::not_found);
  ASSERT_TRUE(write_file(at("plain"), "text", 0600));
  const auto forbidden = spawn(loop_, {.argv = {at("plain")}, .env = {}}, nullptr);
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().code(), ErrorCode::permission_denied);
  const auto no_cwd = spawn(loop_, {.argv = {"/bin/true"}, .env = {}, .cwd = "/no/such/folder"}, nullptr);
  ASSERT_FALSE(no_cwd);
  EXPECT_EQ(no_cwd.error().code(), ErrorCode::not_found);
  EXPECT_THAT(children_of(getpid()), testing::IsSubsetOf(others));
}

TEST_F(ProcTest, WatchesAProcessThatIsNotAChild) {
  ASSERT_TRUE(spawn(loop_, shell("setsid sleep 1000 & echo $!"), nullptr));
  ASSERT_TRUE(eventually([&] { return output().ends_with("\n"); }));
  const pid_t pid = std::stoi(output());
  const auto ticks = start_ticks(pid);
  ASSERT_TRUE(ticks);
  EXPECT_FALSE(watch_pid(loop_, pid, *ticks + 1, nullptr)) << "another process with the same number";
  Box<int> ended;
  auto process = watch_pid(loop_, pid, *ticks, [&] { ended.put(1); });
  ASSERT_TRUE(process);
  ASSERT_TRUE((*process)->signal(SIGKILL));
  EXPECT_TRUE(ended.take());
}

TEST_F(ProcTest, CapturesAShortToolAndStopsALongOne) {
  EXPECT_EQ(run_and_capture(shell("echo hello"), 10s).value_or(""), "hello\n");
  const auto failing = run_and_capture(shell("echo why; exit 3"), 10s);
  ASSERT_FALSE(failing);
  EXPECT_THAT(failing.error().message(), HasSubstr("why"));
  const auto slow = run_and_capture(shell("exec sleep 1000"), 50ms);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code(), ErrorCode::deadline_exceeded);
}

TEST_F(ProcTest, WhatAToolThatTookTooLongHadStartedEndsWithIt) {
  const std::string file = at("child");
  // The child keeps the output open and the shell waits for it, so the pid is in the file long before the limit.
  const auto slow = run_and_capture(shell("sleep 1000 & echo $! > " + file + "; wait"), 2s);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code(), ErrorCode::deadline_exceeded);
  const auto text = read_file(file);
  ASSERT_TRUE(text) << text.error().text();
  const pid_t child = std::stoi(*text);
  // Gone, or a zombie whose new parent has not looked yet.
  EXPECT_TRUE(eventually([&] {
    const auto stat = process_stat(child);
    return !stat || stat->state == 'Z';
  }));
}

TEST_F(ProcTest, ReaperLeavesNoZombieAndStealsNoStatus) {
  ASSERT_TRUE(become_subreaper());
  auto reaper = start_reaper(loop_);
  std::vector<std::unique_ptr<Box<ExitStatus>>> ends;
  for (int i = 0; i < 20; ++i) {
    auto end = std::make_unique<Box<ExitStatus>>();
    // Each leaves an orphan that ends a little later and becomes our child.
    ASSERT_TRUE(spawn(loop_, shell(fmt::format("(sleep 0.1; exit 1) & exit {}", i)), [box = end.get()](ExitStatus s) { box->put(s); }));
    ends.push_back(std::move(end));
  }
  for (int i = 0; i < 20; ++i) {
    const auto status = ends[static_cast<std::size_t>(i)]->take();
    ASSERT_TRUE(status);
    EXPECT_EQ(status->code, i);
  }
  EXPECT_TRUE(eventually([] { return children_of(getpid()).empty(); }));
  reaper.reset();
}

Isolation best_or_skip() { return probe_isolation().best; }

#define SKIP_WITHOUT_NAMESPACES() \
  if (best_or_skip() == Isolation::sessions) GTEST_SKIP() << probe_isolation().lost

TEST_F(ProcTest, IsolatedProcessIsFirstOfItsWorldAndItsEndIsTheEndOfAll) {
  SKIP_WITHOUT_NAMESPACES();
  IsolatedOptions options;
  // A daemonised grandchild in a session of its own, as Ray's drivers are.
  options.spawn =
      shell("setsid sh -c 'sleep 1000 & sleep 1000' & echo $$; ls /proc | grep -c '^[0-9]'; echo ready; while :; do sleep 1000; done");
  options.spawn.env.push_back("RAY_CLOUD_INSTANCE_ID=isolated-test");
  options.isolation = best_or_skip();
  options.lock_file = at("lock");
  options.record_file = at("record");
  Box<ExitStatus> end;
  auto process = spawn_isolated(loop_, options, [&](ExitStatus s) { end.put(s); });
  ASSERT_TRUE(process) << process.error().text();
  const KillAtEnd guard{*process};
  ASSERT_TRUE(eventually([&] { return output().ends_with("ready\n"); }));
  EXPECT_TRUE(output().starts_with("1\n")) << "it is process 1: " << output();
  EXPECT_LT(std::stoi(output().substr(2)), 10) << "it sees its own processes only: " << output();

  const auto record = read_record(at("record"));
  ASSERT_TRUE(record) << record.error().text();
  EXPECT_EQ(record->pid, (*process)->pid());
  EXPECT_EQ(record->start_ticks, start_ticks(record->pid).value_or(0));
  EXPECT_EQ(record->boot_id, boot_id());
  EXPECT_FALSE(lock_is_free(at("lock")).value_or(true));

  const auto tagged = [] {
    std::vector<TaggedProcess> all = tagged_processes();
    std::erase_if(all, [](const TaggedProcess& p) { return p.node != "isolated-test"; });
    return all.size();
  };
  EXPECT_TRUE(eventually([&] { return tagged() >= 4; }));
  ASSERT_TRUE((*process)->signal(SIGKILL));
  ASSERT_TRUE(end.take());
  EXPECT_EQ(tagged(), 0U) << "when the first one is reported dead, so is everything else";
  EXPECT_TRUE(lock_is_free(at("lock")).value_or(false));

  const auto again = spawn_isolated(loop_, options, nullptr);
  ASSERT_FALSE(again) << "a record means: never a second start";
  EXPECT_EQ(again.error().code(), ErrorCode::already_exists);
}

TEST_F(ProcTest, ALockedNodeIsNotStartedTwice) {
  IsolatedOptions options;
  options.spawn = shell("exec sleep 1000");
  options.isolation = Isolation::sessions;
  options.lock_file = at("lock");
  Box<ExitStatus> end;
  auto first = spawn_isolated(loop_, options, [&](ExitStatus s) { end.put(s); });
  ASSERT_TRUE(first);
  const KillAtEnd guard{*first};
  const auto second = spawn_isolated(loop_, options, nullptr);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::conflict);
  ASSERT_TRUE((*first)->signal(SIGKILL));
  ASSERT_TRUE(end.take());
  EXPECT_TRUE(lock_is_free(at("lock")).value_or(false));
}

TEST_F(ProcTest, BindMountIsSeenInsideOnly) {
  SKIP_WITHOUT_NAMESPACES();
  ASSERT_TRUE(make_folders(at("own")));
  ASSERT_TRUE(make_folders(at("shared")));
  ASSERT_TRUE(write_file(at("own/name"), "own\n"));
  IsolatedOptions options;
  options.spawn = shell("cat $D/shared/name; touch $D/shared/made");
  options.isolation = best_or_skip();
  options.binds = {{.source = at("own"), .target = at("shared")}};
  Box<ExitStatus> end;
  ASSERT_TRUE(spawn_isolated(loop_, options, [&](ExitStatus s) { end.put(s); }));
  ASSERT_TRUE(end.take());
  EXPECT_EQ(output(), "own\n");
  EXPECT_EQ(access(at("own/made").c_str(), F_OK), 0);
  EXPECT_NE(access(at("shared/name").c_str(), F_OK), 0);
  options.binds = {{.source = at("own"), .target = at("missing")}};
  const auto broken = spawn_isolated(loop_, options, nullptr);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), HasSubstr("bind mount"));
}

TEST_F(ProcTest, OrdinaryUserGetsAUserNamespaceWithItsOwnId) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become an ordinary user";
  IsolatedOptions options;
  options.spawn = shell("id -u; echo $$");
  options.isolation = Isolation::user_namespaces;
  Box<ExitStatus> end;
  auto started = spawn_isolated(loop_, options, [&](ExitStatus s) { end.put(s); });
  if (!started) GTEST_SKIP() << "no user namespaces here: " << started.error().text();
  ASSERT_TRUE(end.take());
  EXPECT_EQ(output(), "0\n1\n");
  // In a process of its own, since a uid cannot be taken back.
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // as after the exec of a login: else /proc/self stays root's
    rt::EventLoop loop;
    loop.start();
    options.spawn.stdout_file = at("user-out");
    Box<ExitStatus> inner;
    const bool ok = spawn_isolated(loop, options, [&](ExitStatus s) { inner.put(s); }).has_value() && inner.take().has_value();
    _exit(ok ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(at("user-out")).value_or("(none)"), "65534\n1\n");
}

TEST_F(ProcTest, MemoryLimitKillsAndIsCounted) {
  const auto driver = make_cgroup_driver(fmt::format("heliostat-test-{}", getpid()));
  if (driver->kind() == CgroupKind::none) GTEST_SKIP() << driver->about();
  ASSERT_TRUE(driver->create("n", {.memory = 64_MiB, .cpu_quota = {500}, .cpu_weight = {500}, .pids = 100}));
  ASSERT_TRUE(driver->create("n", {.memory = 48_MiB, .cpu_quota = {}, .cpu_weight = {1000}, .pids = 50})) << "setting anew is allowed";
  EXPECT_THAT(driver->list(), Contains("n"));
  IsolatedOptions options;
  options.spawn = shell("head -c 400000000 /dev/zero | tail -c 300000000 > /dev/null; echo $?; exec sleep 1000");
  options.isolation = Isolation::sessions;
  options.cgroup_procs = driver->procs_files("n");
  Box<ExitStatus> end;
  ASSERT_TRUE(spawn_isolated(loop_, options, [&](ExitStatus s) { end.put(s); }));
  ASSERT_TRUE(eventually([&] { return cgroup_oom_kills(driver->folder("n")).value_or(0) > 0; })) << driver->about();
  EXPECT_GT(cgroup_memory_used(driver->folder("n")).value_or(Bytes{}).n, 0);
  const auto busy = driver->remove("n");
  if (!busy) EXPECT_EQ(busy.error().code(), ErrorCode::unavailable);
  ASSERT_TRUE(driver->kill("n"));
  ASSERT_TRUE(end.take());
  EXPECT_TRUE(eventually([&] { return driver->remove("n").has_value(); }));
  EXPECT_TRUE(driver->remove("n")) << "twice is fine";
  EXPECT_THAT(driver->list(), IsEmpty());
}

TEST(CgroupMounts, AreParsedWithContainersAndControllers) {
  const auto v1 = parse_cgroup_mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw shared:4 - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n40 31 0:9 / /proc rw - proc proc rw\n",
      "4:memory:/docker/abc/x\n2:cpu,cpuacct:/user\n1:name=systemd:/\n0::/\n");
  ASSERT_EQ(v1.size(), 3U);
  EXPECT_EQ(v1[0].own, "/sys/fs/cgroup/cpu,cpuacct/user");
  EXPECT_THAT(v1[0].controllers, testing::ElementsAre("cpu", "cpuacct"));
  EXPECT_EQ(v1[1].own, "/sys/fs/cgroup/memory/x");
  EXPECT_TRUE(v1[2].v2);
  EXPECT_EQ(v1[2].own, "/sys/fs/cgroup/unified");
  const auto v2 = parse_cgroup_mounts("30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", "0::/system.slice/h.service\n");
  ASSERT_EQ(v2.size(), 1U);
  EXPECT_EQ(v2[0].own, "/sys/fs/cgroup/system.slice/h.service");
}

TEST_F(ProcTest, FolderChangesArrive) {
  auto watch = open_file_watch(loop_);
  ASSERT_TRUE(watch);
  Box<FileEvent> events;
  const auto seen = [&](FileEvent::Kind kind, const std::string& name) {
    return events.wait_for([&](const std::vector<FileEvent>& all) {
      return std::ranges::any_of(all, [&](const FileEvent& e) { return e.kind == kind && e.name == name; });
    });
  };
  ASSERT_TRUE(make_folders(at("logs")));
  const auto id = (*watch)->add(at("logs"), [&](const FileEvent& e) { events.put(e); });
  ASSERT_TRUE(id);
  EXPECT_FALSE((*watch)->add(at("nothing"), nullptr));
  ASSERT_TRUE(write_file(at("logs/a"), "x"));
  EXPECT_TRUE(seen(FileEvent::Kind::created, "a")) << "moved in";
  const int fd = open(at("logs/a").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  EXPECT_EQ(write(fd, "more", 4), 4);
  EXPECT_TRUE(seen(FileEvent::Kind::modified, "a"));
  close(fd);
  EXPECT_TRUE(seen(FileEvent::Kind::closed, "a"));
  ASSERT_TRUE(make_folders(at("logs/sub")));
  EXPECT_TRUE(seen(FileEvent::Kind::created, "sub"));
  ASSERT_TRUE(wipe(at("logs")));
  EXPECT_TRUE(seen(FileEvent::Kind::gone, "a"));
  EXPECT_TRUE(seen(FileEvent::Kind::ended, ""));
  (*watch)->remove(*id);
}

TEST_F(ProcTest, WipesWhatForbidsWritingAndFollowsNoLink) {
  ASSERT_TRUE(make_folders(at("keep")));
  ASSERT_TRUE(write_file(at("keep/file"), "x"));
  ASSERT_TRUE(make_folders(at("tree/locked/deep")));
  ASSERT_TRUE(write_file(at("tree/locked/deep/f"), "x"));
  ASSERT_EQ(symlink(at("keep").c_str(), at("tree/link").c_str()), 0);
  ASSERT_EQ(chmod(at("tree/locked/deep").c_str(), 0500), 0);
  ASSERT_EQ(chmod(at("tree/locked").c_str(), 0), 0);
  ASSERT_TRUE(wipe(at("tree")));
  EXPECT_NE(access(at("tree").c_str(), F_OK), 0);
  EXPECT_EQ(access(at("keep/file").c_str(), F_OK), 0);
  EXPECT_TRUE(wipe(at("tree")));
}

TEST_F(ProcTest, FilesAreReplacedWhole) {
  ASSERT_TRUE(write_file(at("f"), "one", 0600, true));
  ASSERT_TRUE(write_file(at("f"), "two", 0644));
  EXPECT_EQ(read_file(at("f")).value_or(""), "two");
  struct stat info{};
  ASSERT_EQ(stat(at("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  const auto missing = read_file(at("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::not_found);
  EXPECT_FALSE(write_file(at("no/folder"), "x"));
  EXPECT_FALSE(read_file(at("f"), 2)) << "over the limit";
}

TEST_F(ProcTest, MachineFactsAndProcesses) {
  EXPECT_GE(cpu_count(), 1);
  EXPECT_GT(memory_total().n, (1_MiB).n);
  EXPECT_GT(memory_available().n, 0);
  EXPECT_GT(fs_space("/tmp").value().total.n, 0);
  EXPECT_FALSE(fs_space("/no/such"));
  const auto self = process_stat(getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, getppid());
  EXPECT_GT(self->resident.n, 0);
  auto process =
      spawn(loop_, {.argv = {"sleep", "1000"}, .env = {"PATH=/usr/bin:/bin", "RAY_CLOUD_INSTANCE_ID=n-1", "HELIOSTAT_HOME_ID=h"}}, nullptr);
  ASSERT_TRUE(process);
  const KillAtEnd guard{*process};
  EXPECT_THAT(children_of(getpid(), "sleep"), Contains((*process)->pid()));
  EXPECT_THAT(children_of(getpid(), "raylet"), IsEmpty());
  EXPECT_EQ(environ_value((*process)->pid(), "RAY_CLOUD_INSTANCE_ID"), "n-1");
  EXPECT_FALSE(environ_value((*process)->pid(), "RAY_CLOUD"));
  const auto tagged = tagged_processes();
  const auto found = std::ranges::find(tagged, (*process)->pid(), &TaggedProcess::pid);
  ASSERT_NE(found, tagged.end());
  EXPECT_EQ(found->node, "n-1");
  EXPECT_EQ(found->home, "h");
  EXPECT_FALSE(signal_process(found->pid, found->start_ticks + 1, SIGKILL));
  EXPECT_TRUE(signal_process(found->pid, found->start_ticks, SIGKILL));
}

TEST(NvidiaSmi, LinesAreParsed) {
  const auto gpus = parse_nvidia_smi("0, NVIDIA H200, 143771\n1, NVIDIA GB10, [N/A]\nrubbish\n");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].model, "NVIDIA H200");
  EXPECT_EQ(gpus[0].memory.n, 143771LL << 20);
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].memory.n, 0);
}

}  // namespace
}  // namespace helio::proc
