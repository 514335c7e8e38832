// What a browser and a program get at /login and /jobs/{id}/dashboard/.

#include "api/world_for_test.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace helio::api {
namespace {

using net::testing::RawClient;
using net::testing::RawListener;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const net::Headers kBrowser{{"Accept", "text/html,*/*"}, {"User-Agent", "Mozilla/5.0"}};

net::Headers with(net::Headers headers, std::string name, std::string value) {
  headers.emplace_back(std::move(name), std::move(value));
  return headers;
}

std::string header(const net::ClientResponse& response, std::string_view name) {
  return std::string(net::find_header(response.headers, name).value_or(""));
}

std::string cookie_of(const net::ClientResponse& response) {
  const std::string all = header(response, "Set-Cookie");
  return all.substr(0, all.find(';'));
}

/// A running job of `developer` whose dashboard is a peer that the test plays.
class DashboardTest : public ::testing::Test {
 protected:
  DashboardTest() : job(world.submit("developer")), base("/jobs/" + job + "/dashboard/") {
    world.start_attempt(job);
    world.open_dashboard(job, there.port(), "cluster-secret");
  }
  std::string login(const std::string& as) {
    const auto reply = world.send("none", "POST", "/login", "token=" + world.token(as) + "&next=" + base, kBrowser);
    EXPECT_EQ(reply.status, 303);
    return cookie_of(reply);
  }
  /// Sends in the background and plays the other side; the head that arrived there.
  std::string passes(const std::string& as, const std::string& method, const std::string& target, const net::Headers& headers = {}) {
    net::ClientResponse reply;
    std::string head;
    {
      std::jthread sender([&] { reply = world.send(as, method, target, {}, headers); });
      const auto peer = there.accept();
      head = peer->read_until("\r\n\r\n");
      peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\nSet-Cookie: ray-authentication-token=x\r\n\r\nok");
    }
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "ok");
    EXPECT_EQ(header(reply, "Set-Cookie"), "");
    EXPECT_THAT(header(reply, "Content-Security-Policy"), HasSubstr(base));
    return head;
  }
  int status(const std::string& as, const std::string& method, const std::string& target, const net::Headers& headers = {}) {
    return world.send(as, method, target, {}, headers).status;
  }

  World world;
  RawListener there;
  const std::string job;
  const std::string base;
};

TEST_F(DashboardTest, carries_a_request_with_the_clusters_token_and_not_the_callers) {
  const std::string head =
      passes("viewer", "GET", base + "api/v0/tasks?limit=10&filter=a%20b", {{"Cookie", "x=1"}, {"User-Agent", "curl"}});
  EXPECT_THAT(head, StartsWith("GET /api/v0/tasks?limit=10&filter=a%20b HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("Authorization: Bearer cluster-secret\r\n"));
  EXPECT_THAT(head, HasSubstr("User-Agent: curl\r\n"));
  EXPECT_THAT(head, Not(HasSubstr(world.token("viewer"))));
  EXPECT_THAT(head, Not(HasSubstr("Cookie")));
  EXPECT_THAT(passes("viewer", "GET", base), StartsWith("GET / HTTP/1.1\r\n"));
}

TEST_F(DashboardTest, a_browser_logs_in_and_out) {
  const auto away = world.send("none", "GET", base, {}, kBrowser);
  EXPECT_EQ(away.status, 303);
  EXPECT_EQ(header(away, "Location"), "/login?next=" + net::url_encode(base));
  EXPECT_EQ(world.send("none", "GET", "/login", {}, kBrowser).status, 200);
  const auto wrong = world.send("none", "POST", "/login", "token=hst_wrong&next=" + base, kBrowser);
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(cookie_of(wrong), "");

  const auto in = world.send("none", "POST", "/login", "token=" + world.token("viewer") + "&next=" + base, kBrowser);
  EXPECT_EQ(in.status, 303);
  EXPECT_EQ(header(in, "Location"), base);
  EXPECT_THAT(header(in, "Set-Cookie"), HasSubstr("HttpOnly"));
  EXPECT_THAT(header(in, "Set-Cookie"), HasSubstr("SameSite=Lax"));
  const std::string cookie = cookie_of(in);
  const std::string head = passes("none", "GET", base + "nodes", with(kBrowser, "Cookie", "a=b; " + cookie + "; c=d"));
  EXPECT_THAT(head, HasSubstr("User-Agent: Mozilla/5.0\r\n")) << "Ray hides secrets from browsers only";

  EXPECT_EQ(status("none", "GET", "/v1/jobs", {{"Cookie", cookie}}), 401) << "the API takes no cookies";
  EXPECT_EQ(status("none", "POST", "/logout", {{"Cookie", cookie}, {"Origin", "http://evil"}}), 403);
  EXPECT_EQ(status("none", "POST", "/logout", {{"Cookie", cookie}, {"Sec-Fetch-Site", "same-origin"}}), 303);
  EXPECT_EQ(status("none", "GET", base + "nodes", {{"Cookie", cookie}}), 401) << "the link is dead";
}

TEST_F(DashboardTest, a_login_leads_to_our_pages_only) {
  for (const std::string next : {"https://evil.example/", "//evil.example/", "/jobs/\\evil", "/v1/jobs", "javascript:alert(1)"}) {
    const auto in = world.send("none", "POST", "/login", "token=" + world.token("viewer") + "&next=" + net::url_encode(next), kBrowser);
    EXPECT_EQ(header(in, "Location"), "/login") << next;
  }
  const auto page = world.send("none", "GET", "/login?next=" + net::url_encode("/jobs/\"><script>"), {}, kBrowser);
  EXPECT_THAT(page.body, Not(HasSubstr("<script>")));
  EXPECT_EQ(status("none", "POST", "/login", {{"Origin", "http://evil.example"}}), 403);
}

TEST_F(DashboardTest, lookers_do_not_act_and_nobody_goes_around) {
  const std::string viewer = login("viewer");
  const net::Headers from_here{{"Sec-Fetch-Site", "same-origin"}};
  for (const auto& [method, path] :
       {std::pair{"GET", "api/actors/kill?actor_id=1"}, std::pair{"GET", "worker/traceback?pid=1"},
        std::pair{"PUT", "api/serve/applications/"}, std::pair{"POST", "anything/new"}, std::pair{"PATCH", "nodes"}}) {
    for (const char* as : {"viewer", "other"}) {
      const auto reply = world.send(as, method, base + path);
      EXPECT_EQ(reply.status, 403) << as << " " << path;
      EXPECT_THAT(reply.body, HasSubstr("needs role")) << "says why";
    }
    EXPECT_EQ(status("none", method, base + path, with(from_here, "Cookie", viewer)), 403) << path;
    EXPECT_EQ(status("none", method, base + path), 401) << path;
    EXPECT_THAT(passes("developer", method, base + path), StartsWith(std::string(method) + " /" + path + " ")) << "its owner may";
    EXPECT_THAT(passes("op", method, base + path), StartsWith(method));
  }
  for (const auto& [method, path] : {std::pair{"POST", "api/jobs/"}, std::pair{"POST", "api/jobs/x/stop"},
                                     std::pair{"DELETE", "api/jobs/x"}, std::pair{"PUT", "api/packages/gcs/x.zip"}}) {
    const auto reply = world.send("admin", method, base + path);
    EXPECT_EQ(reply.status, 403) << path;
    EXPECT_THAT(reply.body, HasSubstr("/ray/default")) << "and says where they go";
  }
}

TEST_F(DashboardTest, a_browser_acts_only_from_our_pages) {
  const std::string cookie = login("developer");
  const std::string act = base + "api/serve/applications/";
  const net::Headers mine = with(kBrowser, "Cookie", cookie);
  EXPECT_EQ(status("none", "PUT", act, mine), 403) << "nothing says where it comes from";
  EXPECT_EQ(status("none", "PUT", act, with(mine, "Sec-Fetch-Site", "cross-site")), 403);
  EXPECT_EQ(status("none", "PUT", act, with(mine, "Origin", "http://evil:1")), 403);
  EXPECT_EQ(status("none", "PUT", act, with(mine, "Origin", "null")), 403);
  const std::string head = passes(
      "none", "PUT", act, with(with(mine, "Origin", "http://127.0.0.1:" + std::to_string(world.port())), "Sec-Fetch-Site", "same-origin"));
  for (const char* trace : {"Mozilla", "Origin", "Sec-Fetch"}) EXPECT_THAT(head, Not(HasSubstr(trace))) << "Ray would refuse it";
}

TEST_F(DashboardTest, what_is_judged_is_what_is_sent) {
  for (const std::string path : {"static/..%2f..%2fapi/actors/kill", "static/%2e%2e/api/actors/kill", "nodes/..%2F"}) {
    EXPECT_EQ(status("viewer", "GET", base + path), 400) << path;
  }
  EXPECT_EQ(status("viewer", "GET", base + "api%2Factors%2Fkill"), 403);
  EXPECT_EQ(status("developer", "POST", base + "/api/jobs/"), 400) << "some servers do not see empty segments";
  EXPECT_EQ(status("viewer", "GET", base + "nodes?link=hst_x"), 400) << "and no link's secret goes to a cluster";
  EXPECT_THAT(passes("viewer", "GET", base + "nodes%2Fab"), StartsWith("GET /nodes/ab HTTP/1.1"));
}

TEST_F(DashboardTest, a_link_opens_once_and_shows_this_job_alone) {
  const auto made = world.send("developer", "POST", "/v1/jobs/" + job + "/dashboard-links", R"({"read_only":true})");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string path(json::parse(made.body)->at("path").get_string());
  const auto opened = world.send("none", "GET", path, {}, kBrowser);
  ASSERT_EQ(opened.status, 303);
  EXPECT_EQ(header(opened, "Location"), base);
  EXPECT_THAT(header(opened, "Set-Cookie"), HasSubstr("Path=/jobs/" + job + "/;"));
  const std::string cookie = cookie_of(opened);
  passes("none", "GET", base, {{"Cookie", cookie}});
  EXPECT_EQ(status("none", "PUT", base + "api/serve/applications/", {{"Cookie", cookie}, {"Sec-Fetch-Site", "same-origin"}}), 403)
      << "it only looks, though its maker may act";
  const std::string other = world.submit("developer");
  EXPECT_EQ(status("none", "GET", "/jobs/" + other + "/dashboard/", {{"Cookie", cookie}}), 401);
  const auto again = world.send("none", "GET", path, {}, kBrowser);
  EXPECT_EQ(again.status, 401);
  EXPECT_THAT(again.body, HasSubstr("opened before"));
  EXPECT_EQ(status("viewer", "POST", "/v1/jobs/j-nothing/dashboard-links"), 404);
}

TEST_F(DashboardTest, of_two_cookies_the_one_that_may_act_counts) {
  const auto made = world.send("developer", "POST", "/v1/jobs/" + job + "/dashboard-links", R"({"read_only":true})");
  const std::string path(json::parse(made.body)->at("path").get_string());
  const std::string looks = cookie_of(world.send("none", "GET", path, {}, kBrowser));
  passes("none", "PUT", base + "api/serve/applications/",
         {{"Cookie", looks + "; " + login("developer")}, {"Sec-Fetch-Site", "same-origin"}});
}

TEST_F(DashboardTest, nobody_sends_a_body_before_it_is_known_who) {
  for (const auto& [as, wanted] : {std::pair{"none", "401"}, std::pair{"viewer", "403"}}) {
    RawClient client(world.port());
    std::string head = "POST " + base + "anything HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n";
    if (as != std::string("none")) head += "Authorization: Bearer " + world.token(as) + "\r\n";
    ASSERT_TRUE(client.send(head + "\r\nfirst bytes"));
    EXPECT_THAT(client.read_until("\r\n"), HasSubstr(wanted));
  }
}

TEST_F(DashboardTest, answers_for_rays_page_that_it_needs_no_token) {
  EXPECT_EQ(world.send("viewer", "GET", base + "api/authentication_mode").body, R"({"authentication_mode":"disabled"})");
}

TEST_F(DashboardTest, after_the_cluster_the_record_stands_there) {
  world.change_job(job, [](model::Job& row) {
    row.state = model::JobState::failed;
    row.spec.name = "<b>bold</b>";
    row.verdict = model::Verdict{};
    row.verdict->cause = "entrypoint.exit";
    row.verdict->message = "the entrypoint ended with exit code 3";
  });
  world.close_dashboard(job);
  const auto page = world.send("viewer", "GET", base, {}, kBrowser);
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("the entrypoint ended with exit code 3"));
  EXPECT_THAT(page.body, HasSubstr(job + "-1-h")) << "its nodes";
  EXPECT_THAT(page.body, Not(HasSubstr("<b>bold"))) << "names are text";
  EXPECT_THAT(world.send("viewer", "GET", base, {}, with(kBrowser, "Accept-Language", "zh-CN,zh;q=0.9")).body, HasSubstr("集群已释放"));
  EXPECT_EQ(status("viewer", "GET", base + "api/v0/tasks"), 410);
  EXPECT_EQ(status("none", "GET", base + "api/v0/tasks"), 401);
  EXPECT_EQ(status("viewer", "GET", "/jobs/" + job + "/log"), 200);
  EXPECT_EQ(status("none", "GET", "/jobs/" + job + "/log"), 401);
}

TEST_F(DashboardTest, before_the_cluster_the_reason_stands_there) {
  const std::string queued = world.submit("developer");
  const auto page = world.send("viewer", "GET", "/jobs/" + queued + "/dashboard/", {}, kBrowser);
  EXPECT_EQ(page.status, 503);
  EXPECT_THAT(page.body, HasSubstr("queued"));
  EXPECT_THAT(page.body, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_EQ(status("viewer", "GET", "/jobs/" + queued + "/dashboard/nodes"), 503);
  EXPECT_EQ(status("viewer", "GET", "/jobs/j-nothing/dashboard/"), 404);
  EXPECT_EQ(header(world.send("viewer", "GET", "/jobs/" + queued + "/dashboard?x=1"), "Location"), "/jobs/" + queued + "/dashboard/?x=1");
}

TEST_F(DashboardTest, a_dashboard_that_does_not_answer_is_a_bad_gateway) {
  std::uint16_t dead = 0;
  {
    const RawListener gone;
    dead = gone.port();
  }
  world.open_dashboard(job, dead, "");
  EXPECT_EQ(status("viewer", "GET", base + "nodes"), 502);
}

TEST_F(DashboardTest, a_websocket_is_tunnelled_for_lookers_and_not_for_other_sites) {
  const std::string cookie = login("viewer");
  const auto ask = [&](const std::string& lines) {
    return "GET " + base + "api/jobs/x/logs/tail HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" + lines + "\r\n";
  };
  RawClient foreign(world.port());
  ASSERT_TRUE(foreign.send(ask("Cookie: " + cookie + "\r\nOrigin: http://evil\r\n")));
  EXPECT_THAT(foreign.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 403 "));
  RawClient nobody(world.port());
  ASSERT_TRUE(nobody.send(ask("")));
  EXPECT_THAT(nobody.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
  RawClient client(world.port());
  ASSERT_TRUE(client.send(ask("Cookie: " + cookie + "\r\nOrigin: http://here\r\n")));
  const auto peer = there.accept();
  EXPECT_THAT(peer->read_until("\r\n\r\n"), HasSubstr("Authorization: Bearer cluster-secret\r\n"));
  ASSERT_TRUE(peer->send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframe"));
  EXPECT_THAT(client.read_until("frame"), StartsWith("HTTP/1.1 101 "));
}

TEST_F(DashboardTest, what_a_browser_has_open_ends_with_its_login_and_with_its_token) {
  const auto open = [&](RawClient& client, const std::string& cookie) {
    EXPECT_TRUE(client.send("GET " + base + "api/jobs/x/logs/tail HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nCookie: " + cookie + "\r\n\r\n"));
    auto peer = there.accept();
    peer->read_until("\r\n\r\n");
    EXPECT_TRUE(peer->send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nis open"));
    EXPECT_THAT(client.read_until("is open"), StartsWith("HTTP/1.1 101 "));
    return peer;
  };
  const std::string mine = login("viewer");
  const std::string other = login("viewer");
  RawClient client(world.port());
  RawClient others(world.port());
  const auto peer = open(client, mine);
  const auto others_peer = open(others, other);
  // An answer of the dashboard that has begun, the way its logs are followed.
  RawClient answer(world.port());
  ASSERT_TRUE(answer.send("GET " + base + "nodes HTTP/1.1\r\nHost: here\r\nCookie: " + mine + "\r\n\r\n"));
  const auto answers_peer = there.accept();
  answers_peer->read_until("\r\n\r\n");
  ASSERT_TRUE(answers_peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlines\r\n"));
  answer.read_until("lines\r\n");

  EXPECT_EQ(status("none", "POST", "/logout", {{"Cookie", mine}, {"Sec-Fetch-Site", "same-origin"}}), 303);
  const auto ends = [](RawClient& side) {
    EXPECT_EQ(side.read_all(), "") << "a last chunk would make it look whole";
    EXPECT_TRUE(side.closed());
  };
  for (RawClient* side : {&client, peer.get(), &answer, answers_peer.get()}) ends(*side);
  ASSERT_TRUE(others_peer->send("goes on"));
  EXPECT_EQ(others.read_until("goes on"), "goes on") << "another browser of the same token";

  const auto listed = json::parse(world.send("admin", "GET", "/v1/tokens").body);
  for (const json::Value& token : listed->at("items").get_array()) {
    if (std::string_view(token.at("name").get_string()) != "viewer") continue;
    EXPECT_EQ(status("admin", "DELETE", "/v1/tokens/" + std::string(token.at("id").get_string())), 204);
  }
  for (RawClient* side : {&others, others_peer.get()}) ends(*side);
}

}  // namespace
}  // namespace helio::api
