// A token for some workspaces: what belongs to others is for it what does not exist, on every route that there is.

#include "api/world_for_test.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace helio::api {
namespace {

using net::testing::RawClient;
using net::testing::RawListener;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kHiddenName = "hidden-by-name";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

/// Two jobs of `developer` with all that a job has: `hidden` in workspace default, `mine` in team-b.
class ScopeTest : public ::testing::Test {
 protected:
  ScopeTest()
      : hidden(make("j-0123456789abcdef", "default", std::string(kHiddenName))), mine(make("j-fedcba9876543210", "team-b", "shown")) {
    std::uint16_t dead = 0;
    {
      const RawListener gone;
      dead = gone.port();
    }
    world.open_dashboard(hidden, dead, "cluster-secret");
    world.open_dashboard(mine, dead, "cluster-secret");
    model::RaySubmission submission;
    submission.workspace = "default";
    submission.submission_id = hidden_submission;
    submission.job = JobId(hidden);
    model::ClusterName cluster;
    cluster.workspace = "default";
    cluster.name = hidden_cluster;
    cluster.job = JobId(hidden);
    model::RayPackage package;
    package.workspace = "default";
    package.name = hidden_package;
    EXPECT_TRUE(world.store->write([&](store::WriteTx& tx) -> Result<void> {
      HELIO_CHECK_OK(tx.put(submission, {}));
      HELIO_CHECK_OK(tx.put(cluster, {}));
      return tx.put(package, {});
    }));
  }
  /// Past the API, which knows one workspace so far.
  std::string make(std::string id, const std::string& workspace, const std::string& name) {
    auto job = store::get<model::Job>(*world.store, template_job);
    EXPECT_TRUE(job);
    job->id = JobId(id);
    job->revision = 0;
    job->spec.workspace = workspace;
    job->spec.name = name;
    EXPECT_TRUE(world.store->write([&](store::WriteTx& tx) { return tx.put(*job, {}); }));
    world.start_attempt(id);
    world.change_attempt(id + "-1", [](model::Attempt& attempt) { attempt.reason = "so that it has an event of its job"; });
    return id;
  }
  /// One that nothing has, as long as `id`.
  static std::string no_such(std::string id) {
    id.back() = id.back() == 'a' ? 'b' : 'a';
    return id;
  }
  /// A route's path with what exists in another workspace, or with what does not exist at all, in its places.
  std::string target_of(const std::string& pattern, bool exists) const {
    const auto pick = [&](const std::string& id) { return exists ? id : no_such(id); };
    std::string out = replaced(pattern, "{id}", pick(pattern.starts_with("/ray/") ? hidden_submission : hidden));
    out = replaced(out, "{workspace}", "default");
    out = replaced(out, "{cluster}", pick(hidden_cluster));
    out = replaced(out, "{protocol}", "gcs");
    out = replaced(out, "{rest...}", "nodes");
    out = replaced(out, "{sha256}", std::string(64, 'a'));
    if (pattern.ends_with("/wait")) out += "?timeout=1ms";
    return replaced(out, "{name}", pattern.starts_with("/ray/") ? pick(hidden_package) : "default");
  }
  /// Everything that a caller gets, with the ids that it gave itself made alike.
  std::string answer(const std::string& as, const std::string& method, const std::string& pattern, bool exists) const {
    const auto reply = world.send(as, method, target_of(pattern, exists));
    std::string out = fmt::format("{}\n", reply.status);
    for (const auto& [name, value] : reply.headers) {
      if (name != "Date") out += name + ": " + value + "\n";
    }
    return alike(out + reply.body, exists);
  }
  std::string alike(std::string text, bool exists) const {
    for (const std::string& id : {hidden_submission, hidden, hidden_package, hidden_cluster})
      text = replaced(text, exists ? id : no_such(id), "<id>");
    return text;
  }
  std::string get(const std::string& as, const std::string& target) const {
    const auto reply = world.send(as, "GET", target);
    EXPECT_EQ(reply.status, 200) << target << ": " << reply.body;
    return reply.body;
  }

  World world;
  const std::string template_job = world.submit("developer");
  const std::string hidden_submission = "submitted-elsewhere";
  const std::string hidden_cluster = "team-elsewhere";
  const std::string hidden_package = "_ray_pkg_0123456789abcdef.zip";
  const std::string hidden;
  const std::string mine;
};

TEST_F(ScopeTest, what_is_elsewhere_looks_like_what_is_not_there_on_every_route) {
  int told_apart = 0;
  for (const auto& [method, pattern] : world.routes) {
    if (pattern == "/agent/v1") continue;  // of agents, with tokens of their own
    const std::string there = answer("stranger", method, pattern, true);
    EXPECT_EQ(there, answer("stranger", method, pattern, false)) << method << " " << pattern;
    EXPECT_THAT(there, Not(HasSubstr(kHiddenName))) << method << " " << pattern;
    // The same routes do tell those who know of it, or the comparison above would be of nothing.
    if (method == "GET" && answer("viewer", method, pattern, true) != answer("viewer", method, pattern, false)) ++told_apart;
  }
  EXPECT_GE(told_apart, 12);
}

TEST_F(ScopeTest, an_upgrade_tells_as_little) {
  const auto ask = [&](const std::string& as, const std::string& pattern, bool exists) {
    RawClient client(world.port());
    EXPECT_TRUE(client.send("GET " + target_of(pattern, exists) + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer " +
                            world.token(as) + "\r\n\r\n"));
    const std::string reply = client.read_response();
    return alike(reply.substr(0, reply.find("Date:")) + reply.substr(reply.find("\r\n\r\n")), exists);
  };
  for (const std::string pattern :
       {"/ray/{workspace}/api/jobs/{id}/logs/tail", "/ray/{workspace}/clusters/{cluster}/{rest...}", "/jobs/{id}/dashboard/{rest...}"}) {
    EXPECT_THAT(world.routes, Contains(std::pair(std::string("GET"), pattern)));
    EXPECT_THAT(ask("stranger", pattern, true), HasSubstr("404"));
    EXPECT_EQ(ask("stranger", pattern, true), ask("stranger", pattern, false));
    EXPECT_NE(ask("viewer", pattern, true), ask("viewer", pattern, false));
  }
}

TEST_F(ScopeTest, lists_hold_what_is_in_its_workspaces) {
  for (const std::string target : {"/v1/jobs", "/v1/jobs?state=running,queued", "/v1/nodes", "/v1/nodes?all=true", "/v1/events"}) {
    EXPECT_THAT(get("stranger", target), HasSubstr(mine)) << target;
    EXPECT_THAT(get("stranger", target), Not(HasSubstr(hidden))) << target;
    EXPECT_THAT(get("member", target), HasSubstr(hidden)) << target;
    EXPECT_THAT(get("member", target), Not(HasSubstr(mine))) << target;
    EXPECT_THAT(get("viewer", target), HasSubstr(mine)) << target;
    EXPECT_THAT(get("viewer", target), HasSubstr(hidden)) << target;
  }
  EXPECT_EQ(get("stranger", "/v1/jobs?workspace=default"), get("stranger", "/v1/jobs?workspace=nowhere"));
  EXPECT_THAT(get("stranger", "/v1/jobs?workspace=team-b"), HasSubstr(mine));
  EXPECT_EQ(get("stranger", "/v1/events?job=" + hidden), get("stranger", "/v1/events?job=" + no_such(hidden)));
  EXPECT_THAT(get("stranger", "/v1/events?kind=attempt"), HasSubstr(mine + "-1")) << "an attempt is where its job is";
  EXPECT_EQ(get("stranger", "/v1/events?kind=token"), R"({"items":[]})") << "what is of no workspace is not told";
  EXPECT_THAT(get("stranger", "/v1/jobs/" + mine), HasSubstr("shown"));
}

TEST_F(ScopeTest, pages_of_a_list_are_full_whatever_lies_between) {
  std::vector<std::string> wanted{mine};
  for (int i = 0; i < 3; ++i) {
    make("j-between" + std::to_string(i), "default", "between");
    wanted.push_back(make("j-mine" + std::to_string(i), "team-b", "mine"));
  }
  std::vector<std::string> found;
  std::string cursor;
  do {
    const auto page = json::parse(get("stranger", "/v1/jobs?order=oldest&limit=2" + cursor));
    ASSERT_TRUE(page);
    for (const json::Value& item : page->at("items").get_array()) found.emplace_back(item.at("id").get_string());
    const auto* next = page->get_object().if_contains("next");
    EXPECT_EQ(page->at("items").get_array().size(), 2U);
    cursor = next == nullptr ? "" : "&cursor=" + std::string(next->get_string());
  } while (!cursor.empty());
  EXPECT_EQ(found, wanted);
}

TEST_F(ScopeTest, what_was_accepted_for_one_token_is_not_told_to_another_of_the_same_person) {
  const std::string body = R"({"entrypoint":{"argv":["echo","hi"]}})";
  const net::Headers key{{"Idempotency-Key", "once"}};
  ASSERT_EQ(world.send("developer", "POST", "/v1/jobs", body, key).status, 201);
  const auto again = world.send("stranger", "POST", "/v1/jobs", body, key);
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(again.body, world.send("stranger", "POST", "/v1/jobs", body).body);
}

TEST_F(ScopeTest, a_browser_knows_what_its_token_knows) {
  const auto login = [&](const std::string& as) {
    const auto reply = world.send("none", "POST", "/login", "token=" + world.token(as));
    EXPECT_EQ(reply.status, 303);
    const std::string cookie(net::find_header(reply.headers, "Set-Cookie").value_or(""));
    return cookie.substr(0, cookie.find(';'));
  };
  const std::string stranger = login("stranger");
  const auto status = [&](const std::string& cookies, const std::string& target) {
    return world.send("none", "GET", target, {}, {{"Cookie", cookies}}).status;
  };
  for (const std::string page : {"/dashboard/nodes", "/log"}) {
    EXPECT_EQ(status(stranger, "/jobs/" + hidden + page), 404) << page;
    EXPECT_EQ(status(stranger, "/jobs/" + no_such(hidden) + page), 404) << page;
    EXPECT_NE(status(stranger, "/jobs/" + mine + page), 404) << page;
    EXPECT_NE(status(stranger + "; " + login("viewer"), "/jobs/" + hidden + page), 404) << "another login of this browser does know it";
  }
  // From memory too, after somebody else has looked.
  EXPECT_EQ(status(login("viewer"), "/jobs/" + hidden + "/dashboard/nodes"), 502);
  EXPECT_EQ(status(stranger, "/jobs/" + hidden + "/dashboard/nodes"), 404);
  EXPECT_EQ(world.send("stranger", "POST", "/v1/jobs/" + hidden + "/dashboard-links").status, 404);
  const auto link = world.send("stranger", "POST", "/v1/jobs/" + mine + "/dashboard-links");
  ASSERT_EQ(link.status, 201) << link.body;
  const std::string path(json::parse(link.body)->at("path").get_string());
  EXPECT_EQ(world.send("none", "GET", path).status, 303);
}

}  // namespace
}  // namespace helio::api
