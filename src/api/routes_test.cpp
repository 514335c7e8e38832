#include "api/openapi.h"
#include "api/world_for_test.h"

#include <gtest/gtest.h>
#include <fstream>
#include <set>
#include <sstream>

namespace helio::api {
namespace {

/// The route's path with ids that nothing has.
std::string target_of(const Route& route) {
  std::string out;
  bool inside = false;
  for (const char c : route.path) {
    if (c == '{') out += "nothing";
    if (c == '{' || c == '}')
      inside = c == '{';
    else if (!inside)
      out += c;
  }
  return out;
}

TEST(Routes, AreAllWalkedByEachRole) {
  const World world;
  using Role = model::AccessRole;
  for (const Route& route : all_routes()) {
    const std::string method(route.method);
    const std::string target = target_of(route);
    const auto anonymous = world.send("none", method, target);
    if (!route.access) {
      EXPECT_EQ(anonymous.status, 200) << method << " " << target;
      continue;
    }
    EXPECT_EQ(anonymous.status, 401) << method << " " << target;
    EXPECT_TRUE(net::find_header(anonymous.headers, "WWW-Authenticate")) << method << " " << target;
    for (const auto& [name, role] : {std::pair{"viewer", Role::viewer}, std::pair{"developer", Role::developer}, std::pair{"op", Role::op},
                                     std::pair{"admin", Role::admin}}) {
      const auto& [verb, kind, by_owner] = *route.access;
      const bool may = auth::may(role, verb, kind, by_owner ? auth::Ownership::own : auth::Ownership::others);
      const int status = world.send(name, method, target).status;
      EXPECT_EQ(status == 403, !may) << name << " " << method << " " << target << " answered " << status;
      EXPECT_NE(status, 401) << name << " " << method << " " << target;
      EXPECT_LT(status, 500) << name << " " << method << " " << target;
    }
  }
}

TEST(Routes, ExistInTheRuleTable) {
  for (const Route& route : all_routes()) {
    if (!route.access) continue;
    EXPECT_TRUE(auth::may(model::AccessRole::admin, route.access->verb, route.access->kind, auth::Ownership::others))
        << route.method << " " << route.path << " is open to nobody";
  }
}

TEST(Routes, RefuseUnknownQueryParametersByName) {
  const World world;
  for (const Route& route : all_routes()) {
    if (route.method == "HEAD") continue;  // an answer to HEAD has no body
    const auto response = world.send("admin", std::string(route.method), target_of(route) + "?colour=red");
    EXPECT_EQ(response.status, 400) << route.path;
    const auto problem = json::parse(response.body);
    ASSERT_TRUE(problem) << response.body;
    EXPECT_EQ(std::string_view(problem->at("path").get_string()), "query.colour") << route.path;
  }
}

TEST(Routes, HaveUniqueOperations) {
  std::set<std::string_view> seen;
  for (const Route& route : all_routes()) EXPECT_TRUE(seen.insert(route.operation).second) << route.operation;
}

TEST(Routes, AWrongTokenIsRefusedAndSlowedDown) {
  const World world;
  const auto first = world.send("wrong", "GET", "/v1/jobs");
  EXPECT_EQ(first.status, 401);
  int status = first.status;
  for (int i = 0; i < 20 && status == 401; ++i) status = world.send("wrong", "GET", "/v1/jobs").status;
  EXPECT_EQ(status, 429);
  EXPECT_EQ(world.send("viewer", "GET", "/v1/jobs").status, 200);
}

TEST(Routes, ATokenIsAskedForBeforeTheBodyIsTaken) {
  const World world;
  const std::string huge(2U << 20U, 'x');
  EXPECT_EQ(world.send("admin", "POST", "/v1/jobs", huge).status, 413);
  EXPECT_EQ(world.send("none", "PUT", "/v1/packages/" + std::string(64, 'a'), "zip").status, 401);
}

TEST(OpenApi, NamesEveryRouteAndResolvesEveryReference) {
  const auto document = json::parse(openapi_text(HELIO_VERSION));
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(std::string_view(document->at("openapi").get_string()), "3.1.0");
  std::size_t operations = 0;
  for (const auto& item : document->at("paths").get_object()) operations += item.value().get_object().size();
  EXPECT_EQ(operations, all_routes().size());
  const json::Object& schemas = document->at("components").at("schemas").get_object();
  const std::function<void(const json::Value&)> check = [&](const json::Value& value) {
    if (const auto* array = value.if_array()) {
      for (const json::Value& item : *array) check(item);
    } else if (const auto* object = value.if_object()) {
      for (const auto& member : *object) {
        constexpr std::string_view kPrefix = "#/components/schemas/";
        if (std::string_view(member.key()) == "$ref") {
          const std::string_view to = member.value().get_string();
          ASSERT_TRUE(to.starts_with(kPrefix)) << to;
          EXPECT_TRUE(schemas.contains(to.substr(kPrefix.size()))) << to;
        }
        check(member.value());
      }
    }
  };
  check(*document);
}

TEST(OpenApi, TheCheckedInDocumentIsTheEmittedOne) {
  std::ifstream file(HELIO_OPENAPI);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == openapi_text(HELIO_VERSION)) << "run: heliostatd --print-openapi > api/openapi.json";
}

}  // namespace
}  // namespace helio::api
