#include "service/dashboard_routes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace helio::service {
namespace {

std::vector<std::string> split(std::string path) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    out.push_back(path.substr(at, end - at));
    if (end == path.size()) return out;
    at = end + 1;
  }
}

DashboardUse use(std::string_view method, const std::string& path) { return dashboard_use(method, split(path)); }

TEST(DashboardRoutes, pages_and_lists_look) {
  for (const std::string path : {"", "static/js/main.js", "favicon.ico", "nodes", "nodes/", "nodes/ab12", "logical/actors", "api/jobs/",
                                 "api/jobs/raysubmit_1/logs/tail", "api/v0/tasks", "api/v0/logs/stream", "api/serve/applications/"}) {
    EXPECT_EQ(use("GET", path), DashboardUse::look) << path;
    EXPECT_EQ(use("HEAD", path), DashboardUse::look) << path;
  }
}

TEST(DashboardRoutes, some_reads_act) {
  for (const std::string path : {"worker/traceback", "worker/cpu_profile", "task/traceback", "memory_profile", "api/actors/kill",
                                 "api/v0/delay/5", "test/dump", "api/packages/gcs/x.zip", "nodes/a/b", "nodes//", "static", "api"}) {
    EXPECT_EQ(use("GET", path), DashboardUse::act) << path;
  }
}

TEST(DashboardRoutes, what_is_not_known_acts) {
  for (const std::string path : {"api/new_feature", "NODES", "api/v0/tasks/kill", "", "nodes"}) {
    EXPECT_EQ(use("POST", path), DashboardUse::act) << path;
    EXPECT_EQ(use("PATCH", path), DashboardUse::act) << path;
    EXPECT_EQ(use("OPTIONS", path), DashboardUse::act) << path;
  }
  EXPECT_EQ(use("GET", "api/new_feature"), DashboardUse::act);
}

TEST(DashboardRoutes, jobs_are_heliostats) {
  EXPECT_EQ(use("POST", "api/jobs/"), DashboardUse::jobs);
  EXPECT_EQ(use("POST", "api/jobs/raysubmit_1/stop"), DashboardUse::jobs);
  EXPECT_EQ(use("DELETE", "api/jobs/raysubmit_1"), DashboardUse::jobs);
  EXPECT_EQ(use("PUT", "api/packages/gcs/x.zip"), DashboardUse::jobs);
}

}  // namespace
}  // namespace helio::service
