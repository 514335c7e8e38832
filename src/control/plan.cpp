#include "control/plan.h"

#include "base/json/describe.h"

namespace helio::control {

BOOST_DESCRIBE_STRUCT(StoredPlan, (),
                      (node, cluster, temp_dir, head_temp_dir, work_dir, ray_token_file, address, head_address, port_base, head_port_base,
                       cgroup, revision))

StoredPlan to_stored(const NodeId& node, const ClusterId& cluster, const provider::NodePlan& plan) {
  StoredPlan out;
  out.node = node;
  out.cluster = cluster;
  out.temp_dir = plan.temp_dir;
  out.head_temp_dir = plan.head_temp_dir;
  out.work_dir = plan.work_dir;
  out.ray_token_file = plan.ray_token_file;
  out.address = plan.address;
  out.head_address = plan.head_address;
  out.port_base = plan.port_base;
  out.head_port_base = plan.head_port_base;
  out.cgroup = plan.cgroup;
  return out;
}

provider::NodePlan from_stored(const StoredPlan& stored) {
  provider::NodePlan out;
  out.temp_dir = stored.temp_dir;
  out.head_temp_dir = stored.head_temp_dir;
  out.work_dir = stored.work_dir;
  out.ray_token_file = stored.ray_token_file;
  out.address = stored.address;
  out.head_address = stored.head_address;
  out.port_base = stored.port_base;
  out.head_port_base = stored.head_port_base;
  out.cgroup = stored.cgroup;
  return out;
}

}  // namespace helio::control

HELIO_JSON_DEFINE(helio::control::StoredPlan)
