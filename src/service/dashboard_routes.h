#pragma once
// Which requests to a Ray dashboard look, which act, and which go around heliostat. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace helio::service {

enum class DashboardUse {
  look,  ///< whoever may see the job
  act,   ///< who may open a shell in it: profiling runs code on its nodes, and old versions kill actors by GET
  jobs,  ///< nobody: a job submitted, stopped or deleted behind heliostat's back would be no attempt of its job
};

/// `segments`: the path below the dashboard, decoded; a last empty one is its trailing slash. What is not known acts.
DashboardUse dashboard_use(std::string_view method, const std::vector<std::string>& segments);

}  // namespace helio::service
