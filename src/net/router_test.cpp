#include "net/router_match.h"
#include "net/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helio::net {
namespace {

using Upgrade = Router::Impl::Upgrade;
using ::testing::ElementsAre;
using ::testing::Pair;

class RouterTest : public ::testing::Test {
 protected:
  void add(std::string method, std::string pattern) {
    router_.add(std::move(method), std::move(pattern), {}, [](Request&) { return Response{}; });
  }
  RouteMatch match(std::string_view method, std::string_view target, Upgrade upgrade = Upgrade::no) {
    return router_.impl().match(method, parse_target(target)->segments, upgrade);
  }
  std::string pattern(std::string_view method, std::string_view target) {
    const RouteMatch found = match(method, target);
    return found.route == nullptr ? "" : found.route->pattern;
  }
  Router router_;
};

TEST_F(RouterTest, literal_wins_over_name_wins_over_rest) {
  add("GET", "/v1/jobs/{id}");
  add("GET", "/v1/jobs/summary");
  add("GET", "/v1/{rest...}");
  EXPECT_EQ(pattern("GET", "/v1/jobs/summary"), "/v1/jobs/summary");
  EXPECT_EQ(pattern("GET", "/v1/jobs/j-1"), "/v1/jobs/{id}");
  EXPECT_EQ(pattern("GET", "/v1/jobs/j-1/logs"), "/v1/{rest...}");
  EXPECT_EQ(pattern("GET", "/v2"), "");
}

TEST_F(RouterTest, dead_ends_are_left_again) {
  add("GET", "/a/b/c");
  add("GET", "/a/{x}/d");
  const RouteMatch found = match("GET", "/a/b/d");
  ASSERT_NE(found.route, nullptr);
  EXPECT_THAT(found.captured, ElementsAre("b"));
}

TEST_F(RouterTest, names_capture_decoded_text_but_no_empty_segment) {
  add("GET", "/files/{name}/x/{path...}");
  const RouteMatch found = match("GET", "/files/a%2Fb/x/c/d%20e/");
  ASSERT_NE(found.route, nullptr);
  EXPECT_THAT(found.route->names, ElementsAre("name", "path"));
  EXPECT_THAT(found.captured, ElementsAre("a/b", "c/d e/"));
  EXPECT_EQ(pattern("GET", "/files//x/c"), "");
}

TEST_F(RouterTest, trailing_slash_is_another_route) {
  add("GET", "/api/jobs/");
  EXPECT_EQ(pattern("GET", "/api/jobs/"), "/api/jobs/");
  EXPECT_EQ(pattern("GET", "/api/jobs"), "");
}

TEST_F(RouterTest, head_is_answered_by_get_and_allow_names_the_others) {
  add("GET", "/x");
  add("POST", "/x");
  EXPECT_EQ(pattern("HEAD", "/x"), "/x");
  const RouteMatch found = match("DELETE", "/x");
  EXPECT_EQ(found.route, nullptr);
  EXPECT_EQ(found.allow, "GET, HEAD, POST");
}

TEST_F(RouterTest, websocket_and_get_share_a_path) {
  add("GET", "/both");
  router_.add_websocket("/both", [](Request&) { return WsAccept{}; });
  router_.add_websocket("/only", [](Request&) { return WsAccept{}; });
  EXPECT_TRUE(match("GET", "/both", Upgrade::websocket).route->websocket);
  EXPECT_FALSE(match("GET", "/both").route->websocket);
  EXPECT_EQ(match("GET", "/only").route, nullptr);
  EXPECT_TRUE(match("GET", "/only").only_websocket);
}

TEST_F(RouterTest, routes_lists_all) {
  add("GET", "/b/{id}");
  add("POST", "/a");
  router_.add_websocket("/ws/{x...}", [](Request&) { return WsAccept{}; });
  EXPECT_THAT(router_.routes(), ElementsAre(Pair("GET", "/b/{id}"), Pair("GET", "/ws/{x...}"), Pair("POST", "/a")));
}

}  // namespace
}  // namespace helio::net
