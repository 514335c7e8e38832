// Who gets what at Ray's own Jobs API: every kind of token on every route.

#include "api/world_for_test.h"
#include "net/testing.h"

#include <gtest/gtest.h>
#include <array>
#include <string>

namespace helio::api {
namespace {

using net::testing::RawClient;

const std::array<std::string, 10> kCallers{"none", "wrong", "expired", "stranger", "viewer", "other", "member", "developer", "op", "admin"};

struct Row {
  std::string method;
  std::string path;  ///< below /ray/default; {id} is a job of `developer`
  std::string body;
  std::array<int, 10> status;  ///< in the order of kCallers
};

/// A job that waits: what may be stopped may not be deleted yet, and Ray says so with a 500.
const std::array<Row, 12> kMatrix{
    Row{"GET", "/api/version", "", {401, 401, 401, 404, 200, 200, 200, 200, 200, 200}},
    Row{"GET", "/api/ray/version", "", {401, 401, 401, 404, 200, 200, 200, 200, 200, 200}},
    Row{"GET", "/api/packages/gcs/_ray_pkg_0.zip", "", {401, 401, 401, 404, 403, 404, 404, 404, 404, 404}},
    Row{"PUT", "/api/packages/gcs/_ray_pkg_0.zip", "no zip", {401, 401, 401, 404, 403, 400, 400, 400, 400, 400}},
    Row{"POST", "/api/jobs/", R"({"entrypoint":"true"})", {401, 401, 401, 404, 403, 200, 200, 200, 200, 200}},
    Row{"POST", "/api/jobs", R"({"entrypoint":"true"})", {401, 401, 401, 404, 403, 200, 200, 200, 200, 200}},
    Row{"GET", "/api/jobs/", "", {401, 401, 401, 404, 200, 200, 200, 200, 200, 200}},
    Row{"GET", "/api/jobs", "", {401, 401, 401, 404, 200, 200, 200, 200, 200, 200}},
    Row{"GET", "/api/jobs/{id}", "", {401, 401, 401, 404, 200, 200, 200, 200, 200, 200}},
    Row{"GET", "/api/jobs/{id}/logs", "", {401, 401, 401, 404, 200, 200, 200, 200, 200, 200}},
    Row{"DELETE", "/api/jobs/{id}", "", {401, 401, 401, 404, 403, 403, 403, 500, 500, 500}},
    Row{"POST", "/api/jobs/{id}/stop", "", {401, 401, 401, 404, 403, 403, 403, 200, 200, 200}},
};

class RayFrontTest : public ::testing::Test {
 protected:
  RayFrontTest() {
    // One that was good once.
    const auto made = world.send("admin", "POST", "/v1/tokens", R"({"name":"old","role":"admin","expires":"2999-01-01T00:00:00Z"})");
    const auto reply = json::parse(made.body);
    expired = reply->at("secret").get_string();
    EXPECT_TRUE(world.store->write([&](store::WriteTx& tx) -> Result<void> {
      HELIO_TRY(token, tx.get<model::Token>(std::string(reply->at("token").at("id").get_string())));
      token.expires = Timestamp{1};
      return tx.put(token, {});
    }));
  }
  net::Headers headers_of(const std::string& as) const {
    if (as == "none") return {};
    return {{"Authorization", "Bearer " + (as == "expired" ? expired : world.token(as))}};
  }
  net::ClientResponse send(const std::string& as, const std::string& method, const std::string& target,
                           const std::string& body = {}) const {
    return world.send("none", method, target, body, headers_of(as));
  }
  std::string submit() const {
    const auto reply = send("developer", "POST", "/ray/default/api/jobs/", R"({"entrypoint":"true"})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return std::string(json::parse(reply.body)->at("submission_id").get_string());
  }
  static std::string with_id(std::string path, const std::string& id) {
    if (const auto at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, id);
    return path;
  }

  World world;
  std::string expired;
};

TEST_F(RayFrontTest, every_token_on_every_route) {
  for (const Row& row : kMatrix) {
    for (std::size_t i = 0; i < kCallers.size(); ++i) {
      const auto reply = send(kCallers[i], row.method, "/ray/default" + with_id(row.path, submit()), row.body);
      // After ten wrong tokens their address has to wait.
      const bool slowed_down = (i == 1 || i == 2) && reply.status == 429;
      EXPECT_TRUE(reply.status == row.status[i] || slowed_down)
          << kCallers[i] << " " << row.method << " " << row.path << ": " << reply.status << " " << reply.body;
    }
  }
}

TEST_F(RayFrontTest, a_followers_upgrade_is_judged_the_same_way) {
  const std::string id = submit();
  for (std::size_t i = 0; i < kCallers.size(); ++i) {
    RawClient client(world.port());
    std::string head = "GET /ray/default/api/jobs/" + id +
                       "/logs/tail HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
    for (const auto& [name, value] : headers_of(kCallers[i])) head += name + ": " + value + "\r\n";
    ASSERT_TRUE(client.send(head + "\r\n"));
    const std::string wanted = i < 3 ? "HTTP/1.1 401 " : kCallers[i] == "stranger" ? "HTTP/1.1 404 " : "HTTP/1.1 101 ";
    EXPECT_EQ(client.read_until("\r\n\r\n").substr(0, wanted.size()), wanted) << kCallers[i];
  }
}

TEST_F(RayFrontTest, what_is_not_there_tells_nothing_to_those_without_a_token) {
  const std::string id = submit();
  for (const std::string as : {"none", "wrong", "expired"}) {
    const std::string path = "/api/jobs/{id}/logs";
    const auto there = send(as, "GET", "/ray/default" + with_id(path, id));
    for (const std::string& nowhere : {"/ray/default" + with_id(path, "raysubmit_none"), "/ray/other" + with_id(path, id)}) {
      const auto missing = send(as, "GET", nowhere);
      EXPECT_EQ(missing.status, there.status) << as << " " << nowhere;
      EXPECT_EQ(missing.body, there.body) << as << " " << nowhere;
    }
  }
  // A workspace that is not the caller's and one that does not exist look alike, whatever is in them.
  for (const Row& row : kMatrix) {
    const auto answer = [&](const std::string& workspace, const std::string& job) {
      const auto reply = send("stranger", row.method, "/ray/" + workspace + with_id(row.path, job), row.body);
      std::string text = std::to_string(reply.status) + " " + reply.body;
      text.replace(text.find(workspace), workspace.size(), "<workspace>");
      return text;
    };
    const std::string there = answer("default", id);
    EXPECT_EQ(there, "404 no workspace '<workspace>'; this token is for team-b") << row.method << " " << row.path;
    EXPECT_EQ(there, answer("default", "raysubmit_none")) << row.path;
    EXPECT_EQ(there, answer("nowhere", id)) << row.path;
  }
  EXPECT_EQ(send("admin", "GET", "/ray/other/api/jobs/" + id).body, send("admin", "GET", "/ray/other/api/jobs/raysubmit_none").body);
  EXPECT_EQ(send("admin", "GET", "/ray/other/api/jobs/" + id).status, 404);
}

}  // namespace
}  // namespace helio::api
