#include "api/cluster_forward.h"

#include <algorithm>
#include <array>

namespace helio::api {
namespace {

std::vector<std::string> segments_of(const std::string& rest) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = std::min(rest.find('/', at), rest.size());
    out.push_back(rest.substr(at, end - at));
    if (end == rest.size()) return out;
    at = end + 1;
  }
}

/// Made anew from what was judged, so that the other side cannot read it in another way.
std::string target_of(const std::vector<std::string>& segments, std::string_view target) {
  std::string out;
  for (const std::string& segment : segments) {
    out += '/';
    out += net::url_encode(segment);
  }
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) out += target.substr(question);
  return out;
}

bool tells_of_a_browser(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kNames{"Referer", "Origin", "Access-Control-Request-Method",
                                                          "Access-Control-Request-Headers"};
  const auto same = [name](std::string_view ours) { return net::same_header(name, ours); };
  constexpr std::size_t kPrefix = std::string_view("Sec-Fetch-").size();
  return std::ranges::any_of(kNames, same) || (name.size() > kPrefix && net::same_header(name.substr(0, kPrefix), "Sec-Fetch-"));
}

void add_headers(const service::Dashboard& dashboard, const net::Request& request, bool looks, net::Forward& out) {
  static constexpr std::array<std::string_view, 4> kOurs{"Authorization", "X-Ray-Authorization", "Cookie", "Host"};
  out.headers.reserve(request.headers.size());
  bool has_agent = false;
  for (const auto& [name, value] : request.headers) {
    const bool ours = std::ranges::any_of(kOurs, [&](std::string_view mine) { return net::same_header(name, mine); });
    if (ours || (!looks && tells_of_a_browser(name))) continue;
    has_agent = has_agent || net::same_header(name, "User-Agent");
    out.headers.emplace_back(name, value);
  }
  if (!looks || !has_agent) out.set.emplace_back("User-Agent", "heliostat");  // Ray 2.9 fails without one
  if (!dashboard.token.empty()) out.set.emplace_back("Authorization", "Bearer " + dashboard.token);
}

net::Response unreachable(const Error& why) {
  return net::problem(Error(why.code(), "the cluster's dashboard does not answer: " + why.message()),
                      why.code() == ErrorCode::deadline_exceeded ? 504 : 502);
}

}  // namespace

Result<std::vector<std::string>> segments_below(const net::Request& request) {
  std::vector<std::string> out = segments_of(request.params.at("rest"));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == "." || out[i] == "..") return fail(ErrorCode::invalid_argument, "dot segments are not allowed in the path");
    // Some servers take them for nothing, and see another path than we.
    if (out[i].empty() && i + 1 < out.size()) return fail(ErrorCode::invalid_argument, "empty segments are not allowed in the path");
  }
  return out;
}

std::unique_ptr<net::Forward> forward_to_cluster(const service::Dashboard& dashboard, const net::Request& request,
                                                 const std::vector<std::string>& segments, ClusterUse use) {
  auto out = std::make_unique<net::Forward>();
  out->address = dashboard.address;
  out->port = dashboard.port;
  out->target = target_of(segments, request.target);
  add_headers(dashboard, request, use == ClusterUse::look, *out);
  out->failed = unreachable;
  return out;
}

}  // namespace helio::api
