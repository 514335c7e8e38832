// Long-lived clusters over HTTP: /v1/clusters, and what is behind /ray/<workspace>/clusters/<name> and /clusters/<name>/dashboard.

#include "api/world_for_test.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace helio::api {
namespace {

using net::testing::RawClient;
using net::testing::RawListener;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_in(const net::ClientResponse& response, const std::string& member) {
  const auto value = json::parse(response.body);
  if (!value || !value->is_object() || value->get_object().if_contains(member) == nullptr) return {};
  const json::Value& found = value->get_object().at(member);
  return found.is_string() ? std::string(found.get_string()) : std::string();
}

class ClustersTest : public ::testing::Test {
 protected:
  net::ClientResponse create(const std::string& as, const std::string& body = R"({"name":"team"})") {
    return world.send(as, "POST", "/v1/clusters", body);
  }
  /// A cluster of `developer` that is up; its dashboard is played by the test.
  std::string up() {
    const std::string id = text_in(create("developer"), "id");
    world.start_attempt(id);
    world.open_dashboard(id, there.port(), "cluster-secret");
    return id;
  }
  /// Sends in the background and plays the other side; head and body that arrived there.
  std::string passes(const std::string& as, const std::string& method, const std::string& path, const std::string& body = {}) {
    net::ClientResponse reply;
    std::string head;
    {
      std::jthread sender([&] { reply = world.send(as, method, "/ray/default/clusters/team/" + path, body); });
      const auto peer = there.accept();
      head = peer->read_until(body.empty() ? "\r\n\r\n" : body);
      peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    }
    EXPECT_EQ(reply.status, 200) << as << " " << method << " " << path << " " << reply.body;
    EXPECT_EQ(reply.body, "{}");
    return head;
  }

  World world;
  RawListener there;
};

TEST_F(ClustersTest, are_made_listed_and_deleted_by_their_names) {
  const auto made = create("developer", R"({"name":"team","workers":[{"count":1}],"limits":{"idle":"30m"}})");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(net::find_header(made.headers, "Location"), "/v1/clusters/team");
  const std::string id = text_in(made, "id");
  EXPECT_EQ(text_in(world.send("viewer", "GET", "/v1/clusters/team"), "id"), id);
  EXPECT_THAT(world.send("viewer", "GET", "/v1/clusters").body, HasSubstr(id));
  EXPECT_THAT(world.send("viewer", "GET", "/v1/jobs/" + id).body, HasSubstr("\"type\":\"cluster\"")) << "it is a job too";

  const auto twice = create("other");
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(text_in(twice, "path"), "$.name");
  EXPECT_EQ(world.send("viewer", "GET", "/v1/clusters/nobody").status, 404);
  EXPECT_EQ(world.send("viewer", "GET", "/v1/clusters/team?workspace=elsewhere").status, 404);
  EXPECT_EQ(create("developer", R"({})").status, 400);
  EXPECT_EQ(create("developer", R"({"name":"x","entrypoint":{"command":"true"}})").status, 400);
  EXPECT_EQ(create("viewer", R"({"name":"x"})").status, 403);
  EXPECT_EQ(create("none", R"({"name":"x"})").status, 401);

  EXPECT_EQ(world.send("viewer", "DELETE", "/v1/clusters/team").status, 403);
  EXPECT_EQ(world.send("other", "DELETE", "/v1/clusters/team").status, 403) << "another developer's";
  EXPECT_EQ(world.send("developer", "DELETE", "/v1/clusters/team").status, 202);
  EXPECT_THAT(world.send("viewer", "GET", "/v1/clusters/team").body, HasSubstr("\"stop\":\"user\""));
}

TEST_F(ClustersTest, rays_own_jobs_api_is_behind_the_name) {
  up();
  const std::string list = passes("viewer", "GET", "api/jobs/?x=1");
  EXPECT_THAT(list, StartsWith("GET /api/jobs/?x=1 HTTP/1.1\r\n"));
  EXPECT_THAT(list, HasSubstr("Authorization: Bearer cluster-secret\r\n"));
  EXPECT_THAT(list, Not(HasSubstr(world.token("viewer"))));
  EXPECT_THAT(passes("viewer", "GET", "api/version"), StartsWith("GET /api/version "));
  EXPECT_THAT(passes("viewer", "GET", "api/packages/gcs/x.zip"), StartsWith("GET /api/packages/gcs/x.zip "));
  for (const std::string as : {"developer", "other", "op", "admin"}) {
    EXPECT_THAT(passes(as, "POST", "api/jobs/", R"({"entrypoint":"true"})"), HasSubstr("{\"entrypoint\":\"true\"}")) << as;
    EXPECT_THAT(passes(as, "PUT", "api/packages/gcs/x.zip", "zip-bytes"), HasSubstr("zip-bytes")) << as;
  }
}

TEST_F(ClustersTest, who_may_not_gets_plain_text_and_the_cluster_hears_nothing) {
  up();
  const std::string base = "/ray/default/clusters/team/";
  struct Row {
    std::string method, path;
    int none, viewer, developer;
  };
  const std::vector<Row> rows{
      {"POST", "api/jobs/", 401, 403, 0},
      {"POST", "api/jobs/x/stop", 401, 403, 0},
      {"DELETE", "api/jobs/x", 401, 403, 0},
      {"PUT", "api/packages/gcs/x", 401, 403, 0},
      {"GET", "api/jobs/", 401, 0, 0},
      {"GET", "nodes", 401, 404, 404},
      {"GET", "api/actors/kill", 401, 404, 404},
      {"PUT", "api/serve/applications/", 401, 403, 404},
      {"GET", "api/jobs/../v0/x", 400, 400, 400},
  };
  for (const Row& row : rows) {
    for (const auto& [as, wanted] : {std::pair{"none", row.none}, std::pair{"wrong", row.none}, std::pair{"viewer", row.viewer},
                                     std::pair{"developer", row.developer}}) {
      if (wanted == 0) continue;  // the test above
      const auto reply = world.send(as, row.method, base + row.path);
      EXPECT_TRUE(reply.status == wanted || (wanted == 401 && reply.status == 429))
          << as << " " << row.method << " " << row.path << ": " << reply.status << " " << reply.body;
      EXPECT_THAT(reply.body, Not(HasSubstr("cluster-secret")));
    }
  }
  EXPECT_EQ(world.send("admin", "GET", "/ray/default/clusters/nobody/api/jobs/").status, 404);
  EXPECT_EQ(world.send("admin", "GET", "/ray/elsewhere/clusters/team/api/jobs/").status, 404);
}

TEST_F(ClustersTest, a_follower_of_a_log_is_carried_on) {
  up();
  for (const std::string as : {"none", "viewer"}) {
    RawClient client(world.port());
    std::string head =
        "GET /ray/default/clusters/team/api/jobs/x/logs/tail HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
    if (as != "none") head += "Authorization: Bearer " + world.token(as) + "\r\n";
    ASSERT_TRUE(client.send(head + "\r\n"));
    if (as == "none") {
      EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
      continue;
    }
    const auto peer = there.accept();
    EXPECT_THAT(peer->read_until("\r\n\r\n"), HasSubstr("GET /api/jobs/x/logs/tail "));
    peer->send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello");
    EXPECT_THAT(client.read_until("hello"), StartsWith("HTTP/1.1 101 "));
  }
}

TEST_F(ClustersTest, one_that_is_not_up_says_so) {
  const std::string id = text_in(create("developer"), "id");
  const auto early = world.send("developer", "GET", "/ray/default/clusters/team/api/jobs/");
  EXPECT_EQ(early.status, 503);
  EXPECT_THAT(early.body, HasSubstr("not up yet"));
  world.change_job(id, [](model::Job& job) { job.state = model::JobState::stopped; });
  const auto late = world.send("developer", "GET", "/ray/default/clusters/team/api/jobs/");
  EXPECT_EQ(late.status, 410);
  EXPECT_THAT(late.body, HasSubstr("has ended"));
}

TEST_F(ClustersTest, its_dashboard_is_found_by_its_name) {
  const std::string id = up();
  const auto found = world.send("viewer", "GET", "/clusters/team/dashboard/");
  EXPECT_EQ(found.status, 303);
  EXPECT_EQ(net::find_header(found.headers, "Location"), "/jobs/" + id + "/dashboard/");
  EXPECT_EQ(world.send("viewer", "GET", "/clusters/nobody/dashboard").status, 404);
  EXPECT_EQ(world.send("none", "GET", "/clusters/team/dashboard/").status, 401);
  EXPECT_EQ(world.send("none", "GET", "/clusters/nobody/dashboard/").status, 401) << "and does not tell which exist";
  const auto browser = world.send("none", "GET", "/clusters/team/dashboard/", {}, {{"Accept", "text/html"}});
  EXPECT_EQ(net::find_header(browser.headers, "Location"), "/login?next=" + net::url_encode("/clusters/team/dashboard/"));
}

}  // namespace
}  // namespace helio::api
