#include "model/agent_protocol.h"

#include "base/json/describe.h"

namespace helio::model {
BOOST_DESCRIBE_ENUM(Phase, idle, joined, checked, driving, drained, gone)
BOOST_DESCRIBE_STRUCT(PackageRef, (), (sha256, uri, path, size))
BOOST_DESCRIBE_STRUCT(DriverSpec, (), (submission_id, entrypoint, runtime_env, metadata, resources, packages))
BOOST_DESCRIBE_STRUCT(Assignment, (),
                      (protocol, node, attempt, cluster, generation, role, submitter, index, phase, prefix, ray_version, temp_dir,
                       head_temp_dir, work_dir, ray_token_file, address, head_address, port_base, head_port_base, nodes, ray_node_tag,
                       group, num_cpus, num_gpus, memory, object_store_memory, resources, labels, env, ray, drain_grace, stop_grace, driver,
                       stop_driver, leaving, leaving_nodes, watch_idle, cgroup, memory_limit, disk_limit, log_limit))
BOOST_DESCRIBE_ENUM(ProcessState, none, running, exited)
BOOST_DESCRIBE_STRUCT(ProcessStatus, (), (state, exit_code))
BOOST_DESCRIBE_ENUM(DriverPhase, none, submitting, pending, running, stopping, ended)
BOOST_DESCRIBE_STRUCT(DriverStatus, (), (phase, submission_id, ray_status, error_type, message, exit_code, log_node))
BOOST_DESCRIBE_STRUCT(NodeFault, (), (cause, message, exit_code, evidence, at))
BOOST_DESCRIBE_STRUCT(NodeUsage, (), (cpu, memory, disk, processes))
BOOST_DESCRIBE_STRUCT(OomKills, (), (count, after, by))
BOOST_DESCRIBE_STRUCT(AgentStatus, (),
                      (protocol, node, generation, sequence, agent_version, reached, step, ray_start, gcs_up, api_up, head_agent_up,
                       nodes_alive, nodes_joined, driver, idle_since, fault, oom, marks, logs_complete, logs_caught_up, usage))
BOOST_DESCRIBE_STRUCT(AgentHello, (), (protocol, node, agent_version, generation))
BOOST_DESCRIBE_STRUCT(StreamInfo, (), (id, name, kind, offset, ended))
}  // namespace helio::model

HELIO_JSON_DEFINE_ENUM(helio::model::Phase)
HELIO_JSON_DEFINE(helio::model::PackageRef)
HELIO_JSON_DEFINE(helio::model::DriverSpec)
HELIO_JSON_DEFINE(helio::model::Assignment)
HELIO_JSON_DEFINE_ENUM(helio::model::ProcessState)
HELIO_JSON_DEFINE(helio::model::ProcessStatus)
HELIO_JSON_DEFINE_ENUM(helio::model::DriverPhase)
HELIO_JSON_DEFINE(helio::model::DriverStatus)
HELIO_JSON_DEFINE(helio::model::NodeFault)
HELIO_JSON_DEFINE(helio::model::NodeUsage)
HELIO_JSON_DEFINE(helio::model::OomKills)
HELIO_JSON_DEFINE(helio::model::AgentStatus)
HELIO_JSON_DEFINE(helio::model::AgentHello)
HELIO_JSON_DEFINE(helio::model::StreamInfo)
