// Ray Client of a job's cluster: who gets through, with which token, and what those hear who do not.

#include "api/world_for_test.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helio::api {
namespace {

using net::testing::RawClient;
using net::testing::RawListener;
using net::testing::Signal;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// HEADERS of stream 1 with one field, and its end.
const std::string kRequest("\0\0\1\1\4\0\0\0\1\x82", 10);

/// An agent that is asked for the client server.
class Agent {
 public:
  using Asked = std::function<void(net::WsSession& session, const json::Value& exec)>;
  Agent(World& world, const std::string& node, Asked asked) : asked_(std::move(asked)) {
    net::WsHandlers handlers;
    handlers.on_text = [this](std::string_view text) { hear(text); };
    handlers.on_close = [](const Error&) {};
    session_ = net::ws_connect(
        world.loop, world.ws_url(), {{"Authorization", "Bearer agent-token"}}, 10s, [](const std::shared_ptr<net::WsSession>&) {},
        handlers);
    session_->send_text(json::dump(json::Object{{"type", "hello"}, {"hello", json::Object{{"node", node}}}}));
    EXPECT_TRUE(welcome_.wait());
  }
  ~Agent() { session_->close(1000, "bye"); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  [[nodiscard]] bool forgotten() { return forgotten_.wait(); }

 private:
  void hear(std::string_view text) {
    const auto frame = json::parse(text);
    const std::string_view type = frame->at("type").get_string();
    if (type == "welcome") welcome_.set();
    if (type == "exec") asked_(*session_, frame->at("exec"));
    if (type == "exec_cancel") forgotten_.set();
  }
  const Asked asked_;
  Signal welcome_;
  Signal forgotten_;
  std::shared_ptr<net::WsSession> session_;
};

class RayClientTest : public ::testing::Test {
 protected:
  RayClientTest() : job(world.submit("developer")), base("/v1/jobs/" + job + "/ray-client") { world.start_attempt(job); }
  std::string upgrade(const std::string& as) const {
    const std::string token = as == "none" ? "" : "Authorization: Bearer " + world.token(as) + "\r\n";
    return "GET " + base + "/tunnel HTTP/1.1\r\nHost: x\r\n" + token + "Connection: Upgrade\r\nUpgrade: ray-client\r\n\r\n";
  }
  /// Head and body of what is answered to `as`.
  std::string ask(const std::string& as) const {
    RawClient client(world.port());
    EXPECT_TRUE(client.send(upgrade(as)));
    return client.read_response();
  }

  World world;
  RawListener there;
  const std::string job;
  const std::string base;
};

TEST_F(RayClientTest, those_who_may_act_get_through_with_the_clusters_token) {
  world.open_ray_client(job, there.port(), "cluster-secret");
  for (const char* as : {"developer", "op", "admin"}) {
    RawClient client(world.port());
    ASSERT_TRUE(client.send(upgrade(as)));
    const auto peer = there.accept();
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 ")) << as;
    ASSERT_TRUE(client.send(kPreface + kRequest));
    const std::string came = peer->read_until("Bearer cluster-secret");
    EXPECT_THAT(came, AllOf(StartsWith(kPreface), HasSubstr("authorization")));
    EXPECT_THAT(came, Not(HasSubstr(world.token(as))));
    ASSERT_TRUE(peer->send("answer"));
    EXPECT_EQ(client.read_until("answer"), "answer") << "as it is, without the token";
  }
  const auto events = world.send("viewer", "GET", "/v1/jobs/" + job + "/events");
  EXPECT_THAT(events.body, HasSubstr("ray_client.open"));
}

TEST_F(RayClientTest, others_do_not) {
  world.open_ray_client(job, there.port(), "cluster-secret");
  EXPECT_THAT(ask("none"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask("wrong"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask("viewer"), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("needs role")));
  EXPECT_THAT(ask("other"), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("needs role")));
  for (const auto& [as, status] : {std::pair{"none", 401}, std::pair{"viewer", 403}, std::pair{"other", 403}}) {
    EXPECT_EQ(world.send(as, "GET", base).status, status) << as;
  }
}

TEST_F(RayClientTest, says_what_a_client_has_to_be) {
  world.open_ray_client(job, there.port(), "cluster-secret");
  world.change_attempt(job + "-1", [](model::Attempt& attempt) { attempt.image = "default"; });
  const auto reply = world.send("developer", "GET", base);
  EXPECT_EQ(reply.status, 200);
  const auto view = json::parse(reply.body);
  EXPECT_EQ(std::string_view(view->at("ray_version").get_string()), "2.60.0");
  EXPECT_EQ(std::string_view(view->at("python_version").get_string()), "3.11.7");
  EXPECT_THAT(std::string(view->at("python").get_string()), HasSubstr("/bin/python"));
  EXPECT_THAT(reply.body, Not(HasSubstr("cluster-secret")));
}

TEST_F(RayClientTest, a_ray_without_tokens_gets_what_the_client_sends) {
  world.open_ray_client(job, there.port(), "");
  RawClient client(world.port());
  ASSERT_TRUE(client.send(upgrade("developer")));
  const auto peer = there.accept();
  client.read_until("\r\n\r\n");
  ASSERT_TRUE(client.send(kPreface + kRequest + "!"));
  EXPECT_EQ(peer->read_until("!"), kPreface + kRequest + "!");
}

TEST_F(RayClientTest, a_cluster_that_is_not_up_is_told_from_one_that_is_gone) {
  EXPECT_THAT(ask("developer"), AllOf(StartsWith("HTTP/1.1 412 "), HasSubstr("is not up"), HasSubstr("helio explain")));
  world.open_ray_client(job, there.port(), "cluster-secret");
  world.close_dashboard(job);
  world.change_job(job, [](model::Job& row) { row.state = model::JobState::succeeded; });
  EXPECT_THAT(ask("developer"), AllOf(StartsWith("HTTP/1.1 412 "), HasSubstr("has succeeded"), HasSubstr("gone")));
  EXPECT_EQ(world.send("developer", "GET", base).status, 412);
}

TEST_F(RayClientTest, a_request_without_the_upgrade_is_told_of_it) {
  world.open_ray_client(job, there.port(), "cluster-secret");
  const auto reply = world.send("developer", "GET", base + "/tunnel");
  EXPECT_EQ(reply.status, 426);
  EXPECT_EQ(net::find_header(reply.headers, "Upgrade"), "ray-client");
}

TEST_F(RayClientTest, the_server_is_started_by_the_first_who_comes) {
  std::uint16_t port = RawListener().port();
  world.open_ray_client(job, port, "cluster-secret");
  std::unique_ptr<RawListener> server;
  Signal started;
  Agent agent(world, job + "-1-h", [&](net::WsSession&, const json::Value& exec) {
    EXPECT_EQ(std::string_view(exec.at("program").get_string()), "ray_client_server");
    server = std::make_unique<RawListener>(port);
    started.set();
  });
  RawClient client(world.port());
  ASSERT_TRUE(client.send(upgrade("developer")));
  ASSERT_TRUE(started.wait());
  const auto peer = server->accept();
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  ASSERT_TRUE(client.send(kPreface + kRequest));
  EXPECT_THAT(peer->read_until("cluster-secret"), StartsWith(kPreface));
  EXPECT_TRUE(agent.forgotten()) << "nobody waits for its end any more";
}

TEST_F(RayClientTest, why_there_will_be_no_server_is_the_answer) {
  world.open_ray_client(job, RawListener().port(), "cluster-secret");
  const Agent agent(world, job + "-1-h", [](net::WsSession& session, const json::Value& exec) {
    json::Object done{{"id", exec.at("id")}, {"exit_code", 1}, {"error", "Ray's client server ended with 1: no module named grpc"}};
    session.send_text(json::dump(json::Object{{"type", "exec_done"}, {"exec", std::move(done)}}));
  });
  EXPECT_THAT(ask("developer"), AllOf(StartsWith("HTTP/1.1 412 "), HasSubstr("no module named grpc")));
}

}  // namespace
}  // namespace helio::api
