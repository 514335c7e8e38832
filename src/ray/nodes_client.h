#pragma once
// Membership and readiness of a cluster, over HTTP. Blocking; one thread at a time.

#include "base/error.h"
#include "ray/jobs_client.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace helio::ray {

struct NodeRow {
  std::string ray_id;  ///< hex, Ray's
  std::string node;    ///< our id, by label or name
  bool alive = false;
  bool head = false;
  std::string message;  ///< Ray's words on a dead one
};

class NodesClient {
 public:
  static Result<std::unique_ptr<NodesClient>> create(const Endpoint& dashboard);
  explicit NodesClient(std::unique_ptr<net::HttpClient> http) : http_(std::move(http)) {}
  /// Every row of the GCS, dead ones too; not cached by Ray.
  Result<std::vector<NodeRow>> rows();
  void cancel() { http_->cancel(); }

 private:
  std::unique_ptr<net::HttpClient> http_;
};

/// Reads GET /api/v0/nodes.
Result<std::vector<NodeRow>> parse_nodes(std::string_view body);

/// Ray's own agent on a node: without it a submit to that head fails.
class AgentClient {
 public:
  static Result<std::unique_ptr<AgentClient>> create(const Endpoint& agent);
  explicit AgentClient(std::unique_ptr<net::HttpClient> http) : http_(std::move(http)) {}
  /// True once it serves and its raylet is healthy.
  bool healthy();
  void cancel() { http_->cancel(); }

 private:
  std::unique_ptr<net::HttpClient> http_;
};

}  // namespace helio::ray
