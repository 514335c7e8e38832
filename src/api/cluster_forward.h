#pragma once
// Requests that are carried on to a cluster's own dashboard: with its token instead of ours, and only along paths that were judged.

#include "net/http.h"
#include "service/dashboards.h"

#include <memory>
#include <string>
#include <vector>

namespace helio::api {

/// The path parameter `rest`, decoded, in segments; a last empty one is its trailing slash. Error: invalid_argument for dot segments and
/// empty ones, which the other side may read in another way than we.
Result<std::vector<std::string>> segments_below(const net::Request& request);

enum class ClusterUse {
  look,
  act,  ///< without what tells of a browser: Ray refuses writes that show it, because it cannot tell who sent them; we have
};

/// To `segments` of the dashboard, which is live, with the request's query.
std::unique_ptr<net::Forward> forward_to_cluster(const service::Dashboard& dashboard, const net::Request& request,
                                                 const std::vector<std::string>& segments, ClusterUse use);

}  // namespace helio::api
