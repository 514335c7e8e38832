#include "agent/client_server.h"
#include "agent/daemon_link.h"
#include "agent/exec.h"
#include "agent/node_dir.h"
#include "agent/node_processes.h"
#include "agent/port_probe.h"
#include "proc/files.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <string>

namespace helio::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NodeDirTest : public testing::Test {
 protected:
  NodeDirTest() {
    dir = testing::TempDir() + "nodedirXXXXXX";
    EXPECT_NE(::mkdtemp(dir.data()), nullptr);
  }
  ~NodeDirTest() override { std::filesystem::remove_all(dir); }
  void write(const std::string& name, const std::string& text) const { ASSERT_TRUE(proc::write_file(dir + "/" + name, text)); }
  std::string dir;
};

TEST_F(NodeDirTest, ReadsWhatTheProviderLeft) {
  write("assignment.json", R"({"node":"a-1-h","generation":3,"phase":"driving","some_newer_field":1})");
  write("launch.json", R"({"daemon_file":"/nowhere/daemon.json","daemon_url":"http://127.0.0.1:7/"})");
  write("agent.token", "secret\n");
  const auto files = read_node_files(dir);
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_EQ(files->assignment.node.value, "a-1-h");
  EXPECT_EQ(files->assignment.work_dir, dir);
  EXPECT_EQ(files->token, "secret");
  EXPECT_EQ(*daemon_address(*files), "ws://127.0.0.1:7/agent/v1") << "the file is not there yet";
}

TEST_F(NodeDirTest, DaemonIsWhereItsFileSaysNow) {
  write("daemon.json", R"({"pid":1,"url":"http://127.0.0.1:81"})");
  NodeFiles files;
  files.daemon_file = dir + "/daemon.json";
  files.daemon_url = "ws://127.0.0.1:7/agent/v1";
  EXPECT_EQ(*daemon_address(files), "ws://127.0.0.1:81/agent/v1");
  write("daemon.json", R"({"pid":2,"url":"http://127.0.0.1:82"})");
  EXPECT_EQ(*daemon_address(files), "ws://127.0.0.1:82/agent/v1");
}

TEST_F(NodeDirTest, MissingOrDamagedFilesAreNamed) {
  EXPECT_EQ(read_node_files(dir).error().code(), ErrorCode::not_found);
  write("assignment.json", "{");
  EXPECT_THAT(read_node_files(dir).error().message(), HasSubstr("assignment.json"));
}

TEST_F(NodeDirTest, JournalSurvives) {
  EXPECT_FALSE(read_journal(dir).submit_announced);
  node::Journal journal;
  journal.submit_announced = true;
  journal.submit_refused = true;
  journal.submitted_at = Timestamp{1'700'000'000'000'000};
  journal.generation = 5;
  ASSERT_TRUE(write_journal(dir, journal));
  const node::Journal read = read_journal(dir);
  EXPECT_TRUE(read.submit_announced);
  EXPECT_TRUE(read.submit_refused);
  EXPECT_EQ(read.submitted_at, journal.submitted_at);
  EXPECT_EQ(read.generation, 5);
}

TEST_F(NodeDirTest, DamagedJournalForbidsASubmission) {
  write("journal.json", "{\"submit_ann");
  EXPECT_TRUE(read_journal(dir).submit_announced);
  EXPECT_FALSE(read_journal(dir).submit_refused);
}

TEST_F(NodeDirTest, FinalStatusSurvives) {
  EXPECT_FALSE(read_final(dir));
  model::AgentStatus status;
  status.node = NodeId("n");
  status.sequence = 9;
  ASSERT_TRUE(write_final(dir, status));
  EXPECT_EQ(read_final(dir)->sequence, 9);
}

TEST(Frames, PieceIsLittleEndian) {
  using namespace std::string_literals;
  EXPECT_EQ(encode_piece(0x01020304, 0x0506, "ab"), "\1\4\3\2\1\6\5\0\0\0\0\0\0ab"s);
}

TEST(PortProbe, SeesWhatAccepts) {
  const proc::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  EXPECT_FALSE(port_accepts("127.0.0.1", port)) << "bound, not listening";
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  EXPECT_TRUE(port_accepts("127.0.0.1", port));
  EXPECT_FALSE(port_accepts("not an address", port));
}

class ExecTest : public testing::Test {
 protected:
  ExecTest() { loop.start(); }
  ~ExecTest() override {
    execs.reset();
    loop.stop();
  }
  struct Done {
    std::optional<int> code;
    std::string error;
  };
  Done run(std::vector<std::string> argv, Duration limit = 20s) {
    start(std::move(argv), limit);
    return wait();
  }
  void start(std::vector<std::string> argv, Duration limit = 20s) {
    execs->run({.id = "x", .argv = std::move(argv), .limit = limit}, {.env = {"PATH=/usr/bin:/bin", "NODE_VAR=yes"}, .cwd = "/"});
  }
  Done wait() {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [this] { return done.has_value(); }));
    return done.value_or(Done{});
  }
  void wait_for_output() {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [this] { return !output.empty() || refused > 0; }));
  }

  rt::EventLoop loop;
  std::mutex mutex;
  std::condition_variable changed;
  std::string output;
  bool takes = true;
  int refused = 0;
  std::optional<Done> done;
  std::unique_ptr<Execs> execs =
      std::make_unique<Execs>(loop, ExecOut{.output =
                                                [this](const std::string&, std::string_view bytes) {
                                                  const std::scoped_lock lock(mutex);
                                                  changed.notify_all();
                                                  if (!takes) {
                                                    ++refused;
                                                    return false;
                                                  }
                                                  output += bytes;
                                                  return true;
                                                },
                                            .done =
                                                [this](const std::string&, std::optional<int> code, const std::string& error) {
                                                  const std::scoped_lock lock(mutex);
                                                  done = Done{code, error};
                                                  changed.notify_all();
                                                }});
};

/// A process that is nobody's child here; one that has been reaped already is dead too.
bool dies_within(pid_t pid, std::chrono::milliseconds patience) {
  const proc::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH;
  pollfd end{process.get(), POLLIN, 0};
  return ::poll(&end, 1, static_cast<int>(patience.count())) == 1;
}

TEST_F(ExecTest, OutputAndExitCode) {
  const Done result = run({"sh", "-c", "echo out; echo err >&2; echo $NODE_VAR; exit 5"});
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(output, "out\nerr\nyes\n");
}

TEST_F(ExecTest, MuchOutputArrivesWhole) {
  EXPECT_EQ(run({"sh", "-c", "head -c 3000000 /dev/zero"}).code, 0);
  EXPECT_EQ(output.size(), 3'000'000U);
}

TEST_F(ExecTest, LimitEndsIt) {
  const Done result = run({"sh", "-c", "sleep 100"}, 100ms);
  EXPECT_EQ(result.code, 128 + 9);
  EXPECT_THAT(result.error, HasSubstr("limit"));
}

TEST_F(ExecTest, WhoCancelsEndsItWithItsChildren) {
  start({"sh", "-c", "sleep 1000 & echo $!; wait"});
  wait_for_output();
  execs->cancel("other");
  execs->cancel("x");
  const Done result = wait();
  EXPECT_EQ(result.code, 128 + 9);
  EXPECT_THAT(result.error, HasSubstr("cancelled"));
  EXPECT_TRUE(dies_within(std::stoi(output), std::chrono::seconds(30))) << "its child lives";
}

TEST_F(ExecTest, AFullQueueHoldsItBackAndLosesNothing) {
  takes = false;
  start({"sh", "-c", "head -c 200000 /dev/zero"});
  wait_for_output();
  {
    const std::scoped_lock lock(mutex);
    takes = true;
  }
  execs->drained();
  EXPECT_EQ(wait().code, 0);
  EXPECT_EQ(output.size(), 200'000U);
}

TEST_F(ExecTest, AFullQueueDoesNotOutliveTheConnection) {
  takes = false;
  start({"sh", "-c", "head -c 200000 /dev/zero; sleep 1000"});
  wait_for_output();
  execs->cancel_all();
  EXPECT_EQ(wait().code, 128 + 9);
}

TEST_F(ExecTest, NoSuchProgram) {
  const Done result = run({"/nowhere/program"});
  EXPECT_FALSE(result.code);
  EXPECT_NE(result.error, "");
}

/// Its program is a shell's.
class ClientServerTest : public NodeDirTest {
 protected:
  ClientServerTest() { loop.start(); }
  ~ClientServerTest() override {
    loop.stop();
    thread.stop();
  }
  void make(const std::string& script) {
    ClientServerOptions options;
    if (!script.empty()) options.argv = {"sh", "-c", script};
    options.env = {"PATH=/usr/bin:/bin"};
    options.cwd = dir;
    options.log_folder = [this]() -> Result<std::string> {
      if (!session) return fail(ErrorCode::not_found, "no session");
      return dir;
    };
    server = std::make_unique<ClientServer>(loop, thread, std::move(options),
                                            [this](const std::string& id, std::optional<int> code, const std::string& why) {
                                              const std::scoped_lock lock(mutex);
                                              told.push_back(id + " " + (code ? std::to_string(*code) : "-") + " " + why);
                                              changed.notify_all();
                                            });
  }
  /// On its thread, and waited for.
  void on_thread(const std::function<void()>& fn) {
    std::promise<void> done;
    thread.post([&] {
      fn();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return told.size() >= count; }));
    return told;
  }

  rt::EventLoop loop;
  rt::SerialExecutor thread{"test-brain"};
  bool session = true;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> told;
  std::unique_ptr<ClientServer> server;
};

TEST_F(ClientServerTest, RunsOnceForAllWhoWantItAndTellsThemItsEnd) {
  ASSERT_EQ(::mkfifo((dir + "/gate").c_str(), 0600), 0);
  make("echo run >>runs; read line <gate; echo no module named grpc >&2; exit 3");
  on_thread([&] {
    server->want("a");
    server->want("b");
    server->want("c");
    server->forget("b");
  });
  std::ofstream(dir + "/gate") << "go\n";
  EXPECT_THAT(wait_for(2), ElementsAre("a 3 Ray's client server ended with 3: no module named grpc",
                                       "c 3 Ray's client server ended with 3: no module named grpc"));
  on_thread([&] { server->want("d"); });
  std::ofstream(dir + "/gate") << "go\n";
  EXPECT_EQ(wait_for(3).size(), 3U);
  EXPECT_EQ(*proc::read_file(dir + "/runs"), "run\nrun\n") << "again, since it had ended";
}

TEST_F(ClientServerTest, SaysWhyItCannotBeStarted) {
  make("true");
  session = false;
  on_thread([&] { server->want("a"); });
  EXPECT_THAT(wait_for(1), ElementsAre(HasSubstr("no session")));
}

TEST_F(ClientServerTest, LeavesItToRayStart) {
  make("");
  on_thread([&] { server->want("a"); });
  EXPECT_THAT(wait_for(0), IsEmpty());
}

TEST_F(NodeDirTest, DiskOfANodeIsMeasured) {
  write("big", std::string(300'000, 'x'));
  UsageMeter meter(NodeProcesses(false, "no-such-node"), "", {dir});
  EXPECT_GE(meter.measure_disk(), Bytes{300'000});
  EXPECT_EQ(meter.sample().processes, 0);
  EXPECT_FALSE(meter.file_system_full());
}

}  // namespace
}  // namespace helio::agent
