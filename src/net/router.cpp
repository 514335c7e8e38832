#include "net/router_match.h"

#include "base/check.h"

#include <algorithm>
#include <set>
#include <span>

namespace helio::net {
namespace {

using Node = Router::Impl::Node;

std::vector<std::string> split(std::string_view pattern) {
  HELIO_CHECK(pattern.starts_with('/'), "a route starts with a slash");
  std::vector<std::string> parts;
  pattern.remove_prefix(1);
  while (true) {
    const std::size_t end = std::min(pattern.find('/'), pattern.size());
    parts.emplace_back(pattern.substr(0, end));
    if (end == pattern.size()) return parts;
    pattern.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != parts.data()) out += '/';
    out += part;
  }
  return out;
}

class Search {
 public:
  Search(std::string_view method, std::span<const std::string> segments, Router::Impl::Upgrade upgrade)
      : method_(method == "HEAD" ? "GET" : method), segments_(segments), upgrade_(upgrade) {}

  RouteMatch run(const Node& root) {
    walk(root, 0);
    if (match_.route == nullptr) {
      for (const std::string_view method : allowed_) {
        match_.allow += match_.allow.empty() ? "" : ", ";
        match_.allow += method;
        if (method == "GET") match_.allow += ", HEAD";
      }
    }
    return std::move(match_);
  }

 private:
  bool walk(const Node& node, std::size_t depth) {
    if (depth == segments_.size()) return choose(node.routes);
    const std::string& segment = segments_[depth];
    if (const auto found = node.literal.find(segment); found != node.literal.end() && walk(*found->second, depth + 1)) return true;
    if (node.any && !segment.empty()) {
      match_.captured.push_back(segment);
      if (walk(*node.any, depth + 1)) return true;
      match_.captured.pop_back();
    }
    if (!node.rest_routes.empty()) {
      match_.captured.push_back(join(segments_.subspan(depth)));
      if (choose(node.rest_routes)) return true;
      match_.captured.pop_back();
    }
    return false;
  }

  bool choose(const std::vector<std::unique_ptr<Route>>& routes) {
    for (const auto& route : routes) {
      const bool websocket = static_cast<bool>(route->websocket);
      if (websocket && upgrade_ == Router::Impl::Upgrade::no) {
        match_.only_websocket = true;
        continue;
      }
      if (route->method == method_) {
        match_.route = route.get();
        return true;
      }
      if (!websocket) allowed_.insert(route->method);
    }
    return false;
  }

  std::string_view method_;
  std::span<const std::string> segments_;
  Router::Impl::Upgrade upgrade_;
  std::set<std::string_view> allowed_;
  RouteMatch match_;
};

}  // namespace

void Router::Impl::add(Route route) {
  Node* node = &root;
  const std::vector<std::string> parts = split(route.pattern);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const bool capture = part.size() > 2 && part.front() == '{' && part.back() == '}';
    if (capture && part.ends_with("...}")) {
      HELIO_CHECK(i + 1 == parts.size(), "{name...} must be the last part of a route");
      route.names.push_back(part.substr(1, part.size() - 5));
      const auto at = route.websocket ? node->rest_routes.begin() : node->rest_routes.end();
      node->rest_routes.insert(at, std::make_unique<Route>(std::move(route)));
      return;
    }
    auto& next = capture ? node->any : node->literal[part];
    if (capture) route.names.push_back(part.substr(1, part.size() - 2));
    if (!next) next = std::make_unique<Node>();
    node = next.get();
  }
  for (const auto& other : node->routes) {
    HELIO_CHECK(other->method != route.method || static_cast<bool>(other->websocket) != static_cast<bool>(route.websocket),
                "route added twice: " + route.method + " " + route.pattern);
  }
  // An upgrade is asked for explicitly, so its route is looked at first.
  const auto at = route.websocket ? node->routes.begin() : node->routes.end();
  node->routes.insert(at, std::make_unique<Route>(std::move(route)));
}

RouteMatch Router::Impl::match(std::string_view method, const std::vector<std::string>& segments, Upgrade upgrade) const {
  return Search(method, segments, upgrade).run(root);
}

Router::Router() : impl_(std::make_unique<Impl>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::add(std::string method, std::string pattern, RouteOptions options, Handler handler) {
  impl_->add({.method = std::move(method),
              .pattern = std::move(pattern),
              .names = {},
              .options = std::move(options),
              .handler = std::move(handler),
              .websocket = {}});
}

void Router::add_websocket(std::string pattern, WsHandler handler) {
  impl_->add({.method = "GET", .pattern = std::move(pattern), .names = {}, .options = {}, .handler = {}, .websocket = std::move(handler)});
}

std::vector<std::pair<std::string, std::string>> Router::routes() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::vector<const Node*> open{&impl_->root};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const auto* list : {&node->routes, &node->rest_routes}) {
      for (const auto& route : *list) out.emplace_back(route->method, route->pattern);
    }
    for (const auto& [part, next] : node->literal) open.push_back(next.get());
    if (node->any) open.push_back(node->any.get());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace helio::net
