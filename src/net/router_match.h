#pragma once
// What the server asks of a Router.

#include "net/server.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helio::net {

struct Route {
  std::string method;
  std::string pattern;
  std::vector<std::string> names;  ///< of the captured parts, in order
  RouteOptions options;
  Handler handler;
  WsHandler websocket;  ///< instead of handler
};

struct RouteMatch {
  const Route* route = nullptr;
  std::vector<std::string> captured;
  std::string allow;            ///< when the path is known but not with this method
  bool only_websocket = false;  ///< the path wants an upgrade
};

struct Router::Impl {
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> literal;
    std::unique_ptr<Node> any;
    std::vector<std::unique_ptr<Route>> routes;       ///< end here
    std::vector<std::unique_ptr<Route>> rest_routes;  ///< `{name...}` follows here
  };
  Node root;

  void add(Route route);
  enum class Upgrade { no, websocket };
  /// Literal parts win over `{name}`, that over `{name...}`. HEAD is answered by GET.
  [[nodiscard]] RouteMatch match(std::string_view method, const std::vector<std::string>& segments, Upgrade upgrade) const;
};

}  // namespace helio::net
