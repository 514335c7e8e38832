#include "base/json/json.h"
#include "daemon/daemon_file.h"
#include "daemon/options.h"
#include "daemon/wiring.h"
#include "net/client.h"
#include "net/testing_tls.h"
#include "proc/files.h"
#include "proc/process.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmath>
#include <semaphore>
#include <thread>

namespace helio::daemon {
namespace {

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/helio-daemon-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    options_.home.root = std::string(name) + "/home";
    options_.agent = "/bin/true";
    root_ = name;
  }
  void TearDown() override { EXPECT_TRUE(proc::wipe(root_)); }

  Result<std::unique_ptr<Daemon>> start() {
    return Daemon::start(options_, [this] { stops_.release(); });
  }
  std::unique_ptr<Daemon> must_start() {
    auto daemon = start();
    if (!daemon) {
      ADD_FAILURE() << daemon.error().text();
      std::abort();
    }
    return std::move(*daemon);
  }
  void configure(const std::string& yaml) {
    ASSERT_TRUE(proc::make_folders(options_.home.root));
    ASSERT_TRUE(proc::write_file(options_.home.config(), yaml));
  }
  net::ClientResponse get(const Daemon& daemon, const std::string& method, const std::string& target, const std::string& body = {}) {
    const auto token = proc::read_file(options_.home.admin_token());
    auto client = net::HttpClient::create(daemon.url(), {{"Authorization", "Bearer " + token->substr(0, token->find('\n'))}});
    net::ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    auto response = (*client)->send(request);
    EXPECT_TRUE(response) << response.error().text();
    return response ? std::move(*response) : net::ClientResponse{};
  }
  model::DaemonFile file() { return *json::parse_as<model::DaemonFile>(*proc::read_file(options_.home.daemon_file())); }

  std::string root_;
  Options options_;
  std::counting_semaphore<> stops_{0};
};

TEST_F(DaemonTest, StartsOnAnEmptyFolderAndSaysWhereItIs) {
  const auto daemon = must_start();
  EXPECT_EQ(get(*daemon, "GET", "/v1/status").status, 200);
  EXPECT_EQ(file().url, daemon->url());
  EXPECT_EQ(file().pid, ::getpid());
  EXPECT_EQ(file().start_ticks, *proc::start_ticks(::getpid()));
  EXPECT_EQ(file().boot_id, proc::boot_id());
  struct stat info{};
  ASSERT_EQ(::stat(options_.home.admin_token().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(options_.home.root.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(DaemonTest, RefusesToStartTwiceOnOneFolder) {
  const auto first = must_start();
  const auto second = start();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::conflict);
  EXPECT_NE(second.error().message().find("pid " + std::to_string(::getpid())), std::string::npos) << second.error().text();
  EXPECT_EQ(get(*first, "GET", "/v1/healthz").status, 200);
}

TEST_F(DaemonTest, KeepsItsPortItsTokenAndItsJobs) {
  std::string url;
  std::string token;
  {
    const auto daemon = must_start();
    url = daemon->url();
    token = *proc::read_file(options_.home.admin_token());
    EXPECT_EQ(get(*daemon, "PUT", "/v1/flavors/mine", R"({"resources":{"cpu":1,"memory":"1GiB"}})").status, 200);
  }
  const auto daemon = must_start();
  EXPECT_EQ(daemon->url(), url);
  EXPECT_EQ(*proc::read_file(options_.home.admin_token()), token);
  EXPECT_EQ(get(*daemon, "GET", "/v1/flavors/mine").status, 200);
}

TEST_F(DaemonTest, TakesAnotherPortWhenItsFormerOneIsTaken) {
  const auto other = must_start();  // holds a port
  const std::string url = other->url();
  options_.home.root = root_ + "/second";
  ASSERT_TRUE(proc::make_folders(options_.home.root));
  model::DaemonFile former;
  former.url = url;
  ASSERT_TRUE(write_daemon_file(options_.home, former));
  const auto daemon = must_start();
  EXPECT_NE(daemon->url(), url);
  EXPECT_EQ(file().url, daemon->url());
}

TEST_F(DaemonTest, APortThatIsAskedForAndTakenIsAnError) {
  const auto other = must_start();
  options_.home.root = root_ + "/second";
  options_.listen = other->url().substr(std::string_view("http://").size());
  const auto daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code(), ErrorCode::unavailable);
}

TEST_F(DaemonTest, RefusesAnAddressThatOthersReach) {
  options_.listen = "0.0.0.0:0";
  const auto daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_NE(daemon.error().message().find("TLS"), std::string::npos);
  EXPECT_FALSE(is_loopback("localhost.example"));
  EXPECT_TRUE(is_loopback("127.3.2.1"));
  EXPECT_TRUE(is_loopback("::1"));
}

TEST_F(DaemonTest, ServesOthersOverTlsAndThisMachineWithout) {
  const std::string certificate = root_ + "/cert.pem";
  const std::string key = root_ + "/key.pem";
  net::testing::make_certificate("127.0.0.1", certificate, key);
  const std::string tls = "server:\n  address: 0.0.0.0\n  tls:\n    certificate: " + certificate + "\n    key: ";
  configure(tls + key + "\n");
  const auto daemon = must_start();
  EXPECT_TRUE(daemon->url().starts_with("http://127.0.0.1:"));
  EXPECT_EQ(file().url, daemon->url()) << "agents and the CLI of this home go there";
  const auto status = json::parse(get(*daemon, "GET", "/v1/status").body);
  ASSERT_TRUE(status);
  const std::string public_url(status->at("public_url").get_string());
  ASSERT_TRUE(public_url.starts_with("https://0.0.0.0:"));
  const std::string port = public_url.substr(public_url.rfind(':'));
  const auto https = net::HttpClient::create("https://127.0.0.1" + port, {}, certificate);
  const auto health = (*https)->send({.target = "/v1/healthz"});
  ASSERT_TRUE(health) << health.error().text();
  EXPECT_EQ(health->status, 200);
  EXPECT_FALSE((*net::HttpClient::create("http://127.0.0.1" + port))->send({.target = "/v1/healthz"})) << "there is nothing plain at it";

  options_.home.root = root_ + "/second";
  configure(tls + root_ + "/none\n");
  const auto broken = start();
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().path(), "$.server.tls.key");
}

TEST_F(DaemonTest, SaysWhatIsWrongInItsSettings) {
  configure("pool:\n  colour: red\n");
  auto daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().path(), "$.pool.colour");
  EXPECT_NE(daemon.error().message().find("config.yaml"), std::string::npos);
  configure("pool: {cpu_overcommit: many}\n");
  daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().path(), "$.pool.cpu_overcommit");
  configure("pool: [\n");
  daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code(), ErrorCode::invalid_argument);
  configure("# nothing\n");
  EXPECT_TRUE(start());
}

TEST_F(DaemonTest, SettingsThatAreNoFileAreRefusedAtOnce) {
  ASSERT_TRUE(proc::make_folders(options_.home.root));
  ASSERT_EQ(::mkfifo(options_.home.config().c_str(), 0600), 0);
  const auto daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code(), ErrorCode::invalid_argument);
}

TEST_F(DaemonTest, LooksAfterTheFilesByWhichItIsFound) {
  const auto daemon = must_start();
  const model::DaemonFile before = file();
  for (const char* wrong : {"", "junk", "{}"}) {
    ASSERT_TRUE(proc::write_file(options_.home.daemon_file(), wrong));
    EXPECT_TRUE(daemon->look_after_files());
    EXPECT_EQ(file(), before) << wrong;
  }
  ASSERT_TRUE(proc::wipe(options_.home.daemon_file()));
  EXPECT_TRUE(daemon->look_after_files());
  EXPECT_EQ(file(), before);
  ASSERT_TRUE(proc::wipe(options_.home.lock()));
  const auto looked = daemon->look_after_files();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code(), ErrorCode::conflict);
}

TEST(Settings, ValuesOutOfRangeAreNamed) {
  struct Case {
    std::string_view path;
    void (*set)(model::Settings&);
  };
  using S = model::Settings;
  const Case cases[] = {
      {"$.pool.cpu_overcommit", [](S& s) { s.pool.cpu_overcommit = 0; }},
      {"$.pool.cpu_overcommit", [](S& s) { s.pool.cpu_overcommit = std::nan(""); }},
      {"$.pool.memory_share", [](S& s) { s.pool.memory_share = 50; }},
      {"$.pool.virtual_gpus", [](S& s) { s.pool.virtual_gpus = -3; }},
      {"$.pool.worker_flavor", [](S& s) { s.pool.worker_flavor = ""; }},
      {"$.jobs_api.workers", [](S& s) { s.jobs_api.workers = -1; }},
      {"$.jobs_api.image", [](S& s) { s.jobs_api.image = ""; }},
      {"$.jobs_api.head_flavor", [](S& s) { s.jobs_api.head_flavor = ""; }},
      {"$.pool.mounts[1]", [](S& s) { s.pool.mounts = {"/data", "x"}; }},
      {"$.pool.node_disk", [](S& s) { s.pool.node_disk = Bytes{1}; }},
      {"$.pool.session_root", [](S& s) { s.pool.session_root = "rel"; }},
      {"$.pool.session_root", [](S& s) { s.pool.session_root = "/tmp/much-too-long"; }},
      {"$.pool.session_root", [](S& s) { s.pool.session_root = "/etc/passwd"; }},
      {"$.server.address", [](S& s) { s.server.address = "127.0.0.300"; }},
      {"$.server.port", [](S& s) { s.server.port = 99999; }},
      {"$.server.package_limit", [](S& s) { s.server.package_limit = Bytes{0}; }},
      {"$.keep.logs", [](S& s) { s.keep.logs = Span{-1s}; }},
  };
  EXPECT_TRUE(check_settings({}));
  for (const Case& one : cases) {
    model::Settings settings;
    one.set(settings);
    const auto checked = check_settings(settings);
    ASSERT_FALSE(checked) << one.path;
    EXPECT_EQ(checked.error().path(), one.path);
    EXPECT_EQ(checked.error().code(), ErrorCode::invalid_argument);
  }
}

TEST_F(DaemonTest, RefusesASealingKeyThatOthersCanRead) {
  must_start().reset();
  ASSERT_EQ(::chmod(options_.home.sealing_key().c_str(), 0644), 0);
  const auto daemon = start();
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code(), ErrorCode::precondition_failed);
}

TEST_F(DaemonTest, IsAskedToStopThroughItsApi) {
  const auto daemon = must_start();
  EXPECT_EQ(get(*daemon, "POST", "/v1/daemon/stop").status, 202);
  EXPECT_TRUE(stops_.try_acquire_for(10s));
  daemon->stop();
  daemon->stop();
}

TEST_F(DaemonTest, AFollowerIsCutOffWithinASecondOfItsTokensEnd) {
  const auto daemon = must_start();
  const auto made = json::parse(get(*daemon, "POST", "/v1/tokens", R"({"name":"screen","role":"viewer"})").body);
  ASSERT_TRUE(made);
  const std::string secret(made->at("secret").get_string());
  auto client = net::HttpClient::create(daemon->url(), {{"Authorization", "Bearer " + secret}});
  std::counting_semaphore<> begun{0};
  Result<net::ClientResponse> response;
  std::jthread follower([&] {
    net::ClientRequest request;
    request.target = "/v1/events?watch=true";
    response = (*client)->stream(request, [&](std::string_view) {
      begun.release();
      return true;
    });
  });
  ASSERT_TRUE(begun.try_acquire_for(10s));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(get(*daemon, "DELETE", "/v1/tokens/" + std::string(made->at("token").at("id").get_string())).status, 204);
  follower.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  ASSERT_FALSE(response) << "an end that looks like the whole";
  EXPECT_EQ(response.error().code(), ErrorCode::unavailable) << response.error().text();
}

TEST_F(DaemonTest, AgentsWithoutATokenAreRefused) {
  const auto daemon = must_start();
  rt::EventLoop loop;
  loop.start();
  std::binary_semaphore closed{0};
  std::optional<Error> why;
  net::WsHandlers handlers;
  handlers.on_close = [&](const Error& error) {
    why = error;
    closed.release();
  };
  const auto session = net::ws_connect(
      loop, daemon->url() + "/agent/v1", {{"Authorization", "Bearer none"}}, 10s, [](const std::shared_ptr<net::WsSession>&) {}, handlers);
  ASSERT_TRUE(closed.try_acquire_for(10s));
  EXPECT_EQ(why->code(), ErrorCode::unauthenticated);
  loop.stop();
}

TEST(Listen, IsAnAddressAndAPort) {
  model::ServerSettings server;
  EXPECT_TRUE(apply_listen("127.0.0.1:8321", server));
  EXPECT_EQ(server.port, 8321);
  EXPECT_TRUE(apply_listen("[::1]:0", server));
  EXPECT_EQ(server.address, "::1");
  for (const char* wrong : {"", "8321", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":80", "127.0.0.1:-1"}) {
    EXPECT_FALSE(apply_listen(wrong, server)) << wrong;
  }
}

}  // namespace
}  // namespace helio::daemon
