// Requests that become a plain connection, and the local port whose connections are made of them.

#include "net/port_forward.h"
#include "net/testing.h"
#include "net/testing_tls.h"
#include "net/tls_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace helio::net {
namespace {

using namespace std::string_literals;

using ::testing::HasSubstr;
using testing::RawClient;
using testing::RawListener;
using testing::Signal;
using ::testing::StartsWith;
using testing::TempDir;
using testing::TestServer;

/// Doubles what passes; cut by a '!'.
class Doubler final : public ByteFilter {
 public:
  bool pass(std::string_view bytes, std::string& out) override {
    for (const char c : bytes) out.append(2, c);
    return !bytes.contains('!');
  }
};

using Refused = std::function<Result<void>()>;

/// /t leads to `port`, /doubled too.
Router leading_to(std::uint16_t port, Duration patience = 0s, const Refused& refused = {}) {
  Router router;
  for (const std::string path : {"/t", "/doubled"}) {
    router.add("GET", path, {}, [=](Request& request) {
      Response out;
      out.tunnel = std::make_unique<Tunnel>();
      out.tunnel->protocol = "ray-client";
      out.tunnel->address = "127.0.0.1";
      out.tunnel->port = port;
      out.tunnel->what = "the server";
      out.tunnel->patience = patience;
      out.tunnel->refused = refused;
      if (request.path == "/doubled") out.tunnel->filter = std::make_unique<Doubler>();
      return out;
    });
  }
  router.add("GET", "/no", {}, [](Request&) { return problem(Error(ErrorCode::permission_denied, "not for you")); });
  return router;
}

std::string upgrade(const std::string& path, const std::string& protocol = "ray-client") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n";
}

const std::string kSwitched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ray-client\r\n\r\n";

/// A port on which nobody listens.
std::uint16_t dead_port() { return RawListener().port(); }

TEST(PlainTunnel, carries_every_byte_both_ways) {
  const RawListener there;
  const TestServer front(leading_to(there.port()));
  RawClient client(front.server.port());
  ASSERT_TRUE(client.send(upgrade("/t") + "early"));
  const auto peer = there.accept();
  EXPECT_EQ(client.read_until("\r\n\r\n"), kSwitched);
  ASSERT_TRUE(client.send(" and late"));
  EXPECT_EQ(peer->read_until("late"), "early and late");
  const std::string much(3'000'000, 'm');
  std::thread down([&] { EXPECT_TRUE(peer->send(much + "down")); });
  std::thread up([&] { EXPECT_TRUE(client.send(much + "up")); });
  EXPECT_EQ(peer->read_until("up"), much + "up");
  EXPECT_EQ(client.read_until("down"), much + "down");
  up.join();
  down.join();
  peer->close();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.closed());
}

TEST(PlainTunnel, a_side_that_has_said_all_still_hears_the_other) {
  for (const bool client_first : {true, false}) {
    const RawListener there;
    const TestServer front(leading_to(there.port()));
    RawClient client(front.server.port());
    ASSERT_TRUE(client.send(upgrade("/t")));
    const auto peer = there.accept();
    client.read_until("\r\n\r\n");
    RawClient& first = client_first ? client : *peer;
    RawClient& second = client_first ? *peer : client;
    ::shutdown(first.fd(), SHUT_WR);
    EXPECT_EQ(second.read_all(), "");
    ASSERT_TRUE(second.send("last word"));
    second.close();
    EXPECT_EQ(first.read_all(), "last word") << client_first;
  }
}

TEST(PlainTunnel, is_for_those_who_ask_for_it) {
  const RawListener there;
  const TestServer front(leading_to(there.port()));
  RawClient client(front.server.port());
  for (const std::string& request : {std::string("GET /t HTTP/1.1\r\nHost: x\r\n\r\n"), upgrade("/t", "h2c"),
                                     "GET /t HTTP/1.1\r\nHost: x\r\nUpgrade: ray-client\r\n\r\n"s}) {
    ASSERT_TRUE(client.send(request));
    const std::string answer = client.read_response();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 426 ")) << request;
    EXPECT_THAT(answer, HasSubstr("Upgrade: ray-client\r\n"));
  }
  ASSERT_TRUE(client.send(upgrade("/no")));
  EXPECT_THAT(client.read_response(), HasSubstr("not for you")) << "and the connection goes on";
}

TEST(PlainTunnel, waits_for_somebody_to_listen) {
  const std::uint16_t port = dead_port();
  Signal asked;
  TestServer front(leading_to(port, 20s, [&asked]() -> Result<void> {
    asked.set();
    return {};
  }));
  RawClient client(front.server.port());
  ASSERT_TRUE(client.send(upgrade("/t") + "hello"));
  ASSERT_TRUE(asked.wait());
  const RawListener late(port);
  const auto peer = late.accept();
  EXPECT_EQ(peer->read_until("hello"), "hello");
  EXPECT_EQ(client.read_until("\r\n\r\n"), kSwitched);
}

TEST(PlainTunnel, nobody_there_is_an_ordinary_answer) {
  const TestServer front(leading_to(dead_port()));
  RawClient client(front.server.port());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.send(upgrade("/t")));
    const std::string answer = client.read_response();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 504 "));
    EXPECT_THAT(answer, HasSubstr("the server does not answer"));
  }
  const TestServer hopeless(
      leading_to(dead_port(), 60s, [] { return Result<void>(fail(ErrorCode::precondition_failed, "it is broken")); }));
  RawClient other(hopeless.server.port());
  ASSERT_TRUE(other.send(upgrade("/t")));
  const std::string answer = other.read_response();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 412 "));
  EXPECT_THAT(answer, HasSubstr("it is broken"));
}

TEST(PlainTunnel, a_client_that_leaves_ends_the_wait) {
  Signal asked;
  const TestServer front(leading_to(dead_port(), 600s, [&asked]() -> Result<void> {
    asked.set();
    return {};
  }));
  {
    RawClient client(front.server.port());
    ASSERT_TRUE(client.send(upgrade("/t")));
    ASSERT_TRUE(asked.wait());
  }
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (front.server.connections() > 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(front.server.connections(), 0U);
}

TEST(PlainTunnel, a_filter_sees_what_the_client_sends) {
  const RawListener there;
  const TestServer front(leading_to(there.port()));
  RawClient client(front.server.port());
  ASSERT_TRUE(client.send(upgrade("/doubled") + "ab"));
  const auto peer = there.accept();
  client.read_until("\r\n\r\n");
  ASSERT_TRUE(client.send("c"));
  EXPECT_EQ(peer->read_until("cc"), "aabbcc");
  ASSERT_TRUE(peer->send("as it is"));
  EXPECT_EQ(client.read_until("is"), "as it is");
  ASSERT_TRUE(client.send("!"));
  EXPECT_EQ(peer->read_all(), "") << "nothing that it refused";
  EXPECT_EQ(client.read_all(), "");
}

TEST(PlainTunnel, ends_with_the_server) {
  const RawListener there;
  TestServer front(leading_to(there.port()));
  RawClient client(front.server.port());
  ASSERT_TRUE(client.send(upgrade("/t")));
  const auto peer = there.accept();
  client.read_until("\r\n\r\n");
  front.server.stop();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_EQ(front.server.connections(), 0U);
}

// --- the local port -------------------------------------------------------------------------------------------------------------

/// Both ways of reaching the same server.
class PortForwardTest : public ::testing::TestWithParam<bool> {
 protected:
  PortForwardTest() : front(leading_to(there.port())) {
    if (!GetParam()) return;
    testing::make_certificate("127.0.0.1", certificate, key);
    TlsOptions options;
    options.certificate = certificate;
    options.key = key;
    tls.emplace(front.loop, front.server, options);
    const auto started = tls->start();
    EXPECT_TRUE(started) << started.error().text();
  }
  ~PortForwardTest() override {
    forward.reset();
    if (tls) tls->stop();
  }
  UpgradeTo way(const std::string& target) const {
    UpgradeTo to;
    to.url = tls ? "https://127.0.0.1:" + std::to_string(tls->port()) : front.url();
    to.target = target;
    to.protocol = "ray-client";
    to.headers = {{"Authorization", "Bearer t"}};
    if (tls) to.roots = certificate;
    return to;
  }
  void open(const std::string& target = "/t") {
    auto made = PortForward::open(
        0, [this, target] { return Result<UpgradeTo>(way(target)); },
        [this](const Result<ClientResponse>& answer) {
          refusals.change([&] { refused.push_back(answer ? std::to_string(answer->status) + answer->body : answer.error().text()); });
        });
    ASSERT_TRUE(made) << made.error().text();
    forward = std::move(*made);
  }

  TempDir folder;
  const std::string certificate = folder.path() + "/cert.pem";
  const std::string key = folder.path() + "/key.pem";
  const RawListener there;
  TestServer front;
  std::optional<TlsListener> tls;
  Signal refusals;
  std::vector<std::string> refused;
  std::unique_ptr<PortForward> forward;
};

TEST_P(PortForwardTest, carries_every_byte_both_ways) {
  open();
  RawClient client(forward->port());
  ASSERT_TRUE(client.send("hello"));
  const auto peer = there.accept();
  EXPECT_EQ(peer->read_until("hello"), "hello");
  std::string much(3'000'000, 'm');
  for (std::size_t i = 0; i < much.size(); i += 997) much[i] = static_cast<char>('a' + i % 26);
  std::thread down([&] { EXPECT_TRUE(peer->send(much + "DOWN")); });
  std::thread up([&] { EXPECT_TRUE(client.send(much + "UP")); });
  EXPECT_EQ(peer->read_until("UP"), much + "UP");
  EXPECT_EQ(client.read_until("DOWN"), much + "DOWN");
  up.join();
  down.join();
}

TEST_P(PortForwardTest, a_client_that_has_said_all_still_hears_the_other_side) {
  open();
  RawClient client(forward->port());
  ASSERT_TRUE(client.send("question"));
  ::shutdown(client.fd(), SHUT_WR);
  const auto peer = there.accept();
  EXPECT_EQ(peer->read_all(), "question");
  ASSERT_TRUE(peer->send("answer"));
  peer->close();
  EXPECT_EQ(client.read_all(), "answer");
  EXPECT_TRUE(client.closed());
}

TEST_P(PortForwardTest, several_clients_do_not_mix) {
  open();
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::unique_ptr<RawClient>> peers;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<RawClient>(forward->port()));
    ASSERT_TRUE(clients.back()->send(std::to_string(i) + "."));
    peers.push_back(there.accept());
    EXPECT_EQ(peers.back()->read_until("."), std::to_string(i) + ".");
  }
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(peers[static_cast<std::size_t>(i)]->send("to " + std::to_string(i) + "."));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(clients[static_cast<std::size_t>(i)]->read_until("."), "to " + std::to_string(i) + ".");
}

TEST_P(PortForwardTest, a_refusal_is_told_and_the_client_hung_up_on) {
  open("/no");
  RawClient client(forward->port());
  EXPECT_EQ(client.read_all(), "");
  ASSERT_TRUE(refusals.until([this] { return !refused.empty(); }));
  EXPECT_THAT(refused[0], StartsWith("403"));
  EXPECT_THAT(refused[0], HasSubstr("not for you"));
  const auto tried = PortForward::try_out(way("/no"));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->status, 403);
  EXPECT_EQ(PortForward::try_out(way("/t"))->status, 101);
}

TEST_P(PortForwardTest, ends_with_its_clients) {
  open();
  RawClient client(forward->port());
  ASSERT_TRUE(client.send("x"));
  const auto peer = there.accept();
  peer->read_until("x");
  const std::uint16_t port = forward->port();
  forward.reset();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_FALSE(RawClient(port).connected());
}

INSTANTIATE_TEST_SUITE_P(Net, PortForwardTest, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "tls" : "plain"; });

TEST(PortForward, says_when_the_daemon_is_not_there_or_its_port_is_taken) {
  Signal told;
  std::string why;
  const auto forward = PortForward::open(
      0, []() -> Result<UpgradeTo> { return fail(ErrorCode::unavailable, "no daemon"); },
      [&](const Result<ClientResponse>& answer) { told.change([&] { why = answer ? "an answer" : answer.error().message(); }); });
  ASSERT_TRUE(forward);
  RawClient client((*forward)->port());
  EXPECT_EQ(client.read_all(), "");
  ASSERT_TRUE(told.until([&] { return !why.empty(); }));
  EXPECT_EQ(why, "no daemon");
  const auto second = PortForward::open((*forward)->port(), {}, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::unavailable);
}

}  // namespace
}  // namespace helio::net
