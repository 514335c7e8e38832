#pragma once
// Where a node's things lie, as the provider planned it in the admission; stored beside the node and never computed again.

#include "base/json/json.h"
#include "model/kinds.h"
#include "provider/provider.h"

#include <string>

namespace helio::control {

/// A row of kind "node_plan": it lives exactly as long as its node is not gone.
struct StoredPlan {
  NodeId node;
  ClusterId cluster;
  std::string temp_dir;
  std::string head_temp_dir;
  std::string work_dir;
  std::string ray_token_file;
  std::string address;
  std::string head_address;
  std::int32_t port_base = 0;
  std::int32_t head_port_base = 0;
  std::string cgroup;
  std::int64_t revision = 0;
};

StoredPlan to_stored(const NodeId& node, const ClusterId& cluster, const provider::NodePlan& plan);
provider::NodePlan from_stored(const StoredPlan& stored);

}  // namespace helio::control

HELIO_JSON(helio::control::StoredPlan)

template <>
struct helio::model::KindOf<helio::control::StoredPlan> {
  static constexpr std::string_view name = "node_plan";
  static std::string id(const control::StoredPlan& t) { return t.node.value; }
  static std::string state(const control::StoredPlan&) { return ""; }
  static std::string parent(const control::StoredPlan& t) { return t.cluster.value; }
  static std::string workspace(const control::StoredPlan&) { return ""; }
};
