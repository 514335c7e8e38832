#include "ray/start_command.h"

#include "base/json/json.h"
#include "ray/version.h"

#include <fmt/format.h>
#include <array>
#include <chrono>

namespace helio::ray {

namespace {

constexpr std::string_view kHookVariable = "HELIOSTAT_HOOK_PYTHONPATH";

// Variables that would bend a cluster away from its assignment; users' other RAY_* settings are theirs to make.
bool is_reserved(std::string_view name) {
  constexpr std::array kNames{"RAY_ADDRESS",
                              "RAY_NAMESPACE",
                              "RAY_JOB_CONFIG_JSON_ENV_VAR",
                              "RAY_API_SERVER_ADDRESS",
                              "RAY_JOB_HEADERS",
                              "RAY_JOB_ID",
                              "RAY_START_HOOK",
                              "RAY_AUTH_MODE",
                              "RAY_AUTH_TOKEN",
                              "RAY_AUTH_TOKEN_PATH",
                              "RAY_RAYLET_PID",
                              "RAY_LOG_TO_STDERR",
                              "RAY_OVERRIDE_LABELS",
                              "RAY_USE_RANDOM_PORTS",
                              "RAY_CLOUD_INSTANCE_ID",
                              "RAY_NODE_TYPE_NAME"};
  for (const std::string_view reserved : kNames) {
    if (name == reserved) return true;
  }
  return name.starts_with("RAY_RUNTIME_ENV") && name != "RAY_RUNTIME_ENV_IGNORE_GITIGNORE";
}

std::string number(double value) { return fmt::format("{}", value); }

std::string labels_flag(const StartSpec& spec, const Features& features) {
  std::map<std::string, std::string> labels = spec.labels;
  if (features.node_label) labels[std::string(kNodeLabel)] = spec.node;
  if (!features.label_pairs) return "--labels=" + json::dump(json::encode(labels));
  std::string pairs;
  for (const auto& [key, value] : labels) pairs += fmt::format("{}{}={}", pairs.empty() ? "" : ",", key, value);
  return "--labels=" + pairs;
}

std::vector<std::string> make_argv(const StartSpec& spec, const Features& features) {
  const Ports& ports = spec.ports;
  std::vector<std::string> argv{spec.prefix + "/bin/ray", "start"};
  const auto add = [&](std::string_view flag, const auto& value) { argv.push_back(fmt::format("--{}={}", flag, value)); };
  if (spec.head) argv.emplace_back("--head");
  argv.emplace_back("--block");
  add("node-ip-address", spec.address);
  if (spec.head) {
    add("port", ports.gcs());
    add("include-dashboard", "true");
    add("dashboard-host", "127.0.0.1");
    add("dashboard-port", ports.dashboard());
    add("ray-client-server-port", ports.ray_client());
    argv.emplace_back("--no-monitor");
  } else {
    add("address", fmt::format("{}:{}", spec.head_address, spec.head_ports.gcs()));
  }
  if (spec.head || features.own_temp_dir) add("temp-dir", spec.temp_dir);
  add("dashboard-agent-listen-port", ports.agent_http());
  add("dashboard-agent-grpc-port", ports.agent_grpc());
  add("runtime-env-agent-port", ports.runtime_env_agent());
  add("metrics-export-port", ports.metrics_export());
  add("object-manager-port", ports.object_manager());
  add("node-manager-port", ports.node_manager());
  add("min-worker-port", ports.first_worker());
  add("max-worker-port", ports.last_worker());
  add("num-cpus", number(spec.num_cpus));
  add("num-gpus", number(spec.num_gpus));
  add("memory", spec.memory.n);
  add("object-store-memory", spec.object_store_memory.n);
  if (!spec.resources.empty()) add("resources", json::dump(json::encode(spec.resources)));
  if (features.node_label || !spec.labels.empty()) argv.push_back(labels_flag(spec, features));
  if (!features.node_label) add("node-name", spec.node);
  if (features.log_monitor_flag && !spec.log_monitor) add("include-log-monitor", "false");
  argv.emplace_back("--disable-usage-stats");
  add("log-color", "false");
  return argv;
}

/// The first of the ports that the server takes for its clients, from here to 23999: it looks for a free one, but takes it seconds later,
/// and then even if another cluster's has come before it. So the clusters of a machine begin at different ones, four apart.
std::int32_t first_client_port(const StartSpec& spec) {
  constexpr std::int32_t kFirst = 23000;
  constexpr std::int32_t kBlock = 100;
  constexpr std::int32_t kApart = 4;
  constexpr std::int32_t kSpread = 900;
  return kFirst + spec.ports.base / kBlock * kApart % kSpread;
}

/// The server forks to start the server of a client. What gRPC does in the child then, before the exec, can crash it (seen with
/// grpcio 1.85).
constexpr const char* kClientServer = R"(import os
import sys
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
from ray.util.client.server import proxier, server
proxier.MIN_SPECIFIC_SERVER_PORT = int(sys.argv.pop(1))
server.main()
)";

/// As `ray start` would do it but for the ports of clients. Where it listens: the node's address, and 127.0.0.1.
std::vector<std::string> client_server_argv(const StartSpec& spec) {
  return {spec.prefix + "/bin/python",
          "-c",
          kClientServer,
          std::to_string(first_client_port(spec)),
          fmt::format("--address={}:{}", spec.address, spec.ports.gcs()),
          "--host=" + spec.address,
          fmt::format("--port={}", spec.ports.ray_client()),
          "--mode=proxy",
          fmt::format("--runtime-env-agent-address=http://{}:{}", spec.address, spec.ports.runtime_env_agent())};
}

std::int64_t seconds_up(Duration d) { return std::chrono::ceil<std::chrono::seconds>(d).count(); }

std::map<std::string, std::string> make_env(const StartSpec& spec, const Features& features) {
  std::map<std::string, std::string> env;
  for (const auto& [name, value] : spec.env) {
    if (!is_reserved(name)) env[name] = value;
  }
  const std::string bin = spec.prefix + "/bin";
  const auto path = env.find("PATH");
  env["PATH"] = bin + ":" +
                (path == env.end() || path->second.empty() ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" : path->second);
  env.try_emplace("HOME", spec.work_dir);
  env.try_emplace("LANG", "C.UTF-8");
  env["RAY_CLOUD_INSTANCE_ID"] = spec.node;
  if (!spec.group.empty()) env["RAY_NODE_TYPE_NAME"] = spec.group;
  env["RAY_USAGE_STATS_ENABLED"] = "0";
  env["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"] = std::to_string(seconds_up(spec.drain_grace));
  env.try_emplace("RAY_JOB_STOP_WAIT_TIME_S", std::to_string(seconds_up(spec.stop_grace)));
  if (features.token && !spec.token_file.empty()) {
    env["RAY_AUTH_MODE"] = "token";
    env["RAY_AUTH_TOKEN_PATH"] = spec.token_file;
  } else {
    env["RAY_AUTH_MODE"] = "disabled";
  }
  if (spec.head) {
    env["DASHBOARD_METRIC_PORT"] = std::to_string(spec.ports.dashboard_metrics());
    env["AUTOSCALER_METRIC_PORT"] = std::to_string(spec.ports.autoscaler_metrics());
    env.try_emplace("RAY_JOB_START_TIMEOUT_SECONDS", "900");
    env.try_emplace("RAY_health_check_initial_delay_ms", "1000");
    env.try_emplace("RAY_health_check_period_ms", "1000");
    env.try_emplace("RAY_health_check_timeout_ms", "2000");
    env.try_emplace("RAY_health_check_failure_threshold", "3");
  }
  return env;
}

std::vector<std::string> flatten(const std::map<std::string, std::string>& env) {
  std::vector<std::string> out;
  out.reserve(env.size());
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

}  // namespace

Result<StartCommand> start_command(const StartSpec& spec) {
  const auto version = parse_version(spec.ray_version);
  if (!version) return fail(ErrorCode::invalid_argument, "'{}' is not a Ray version", spec.ray_version);
  if (*version < Version{2, 6, 0}) return fail(ErrorCode::invalid_argument, "Ray {} is older than 2.6", spec.ray_version);
  const Features features = features_of(*version);
  StartCommand command;
  command.argv = make_argv(spec, features);
  std::map<std::string, std::string> env = make_env(spec, features);
  std::map<std::string, std::string> exec_env = env;
  const Ports& head = spec.head ? spec.ports : spec.head_ports;
  exec_env["RAY_ADDRESS"] = fmt::format("{}:{}", spec.head ? spec.address : spec.head_address, head.gcs());
  command.exec_env = flatten(exec_env);
  if (spec.head && features.start_hook && !spec.dashboard_full) {
    const std::string folder = spec.work_dir + "/start_hook";
    command.hook_path = folder + "/heliostat_start_hook.py";
    // The hook puts PYTHONPATH back before any other process is started: only `ray start` itself sees the folder.
    const auto python_path = env.find("PYTHONPATH");
    const std::string before = python_path == env.end() ? std::string() : python_path->second;
    env["PYTHONPATH"] = before.empty() ? folder : folder + ":" + before;
    env[std::string(kHookVariable)] = before;
    env["RAY_START_HOOK"] = "heliostat_start_hook.trim";
    command.client_server = client_server_argv(spec);
  }
  command.env = flatten(env);
  return command;
}

std::string_view start_hook_source() {
  return R"(import os


def trim(ray_params, head):
    """Called first of all by `ray start`: leaves out what a job does not need."""
    os.environ.pop("RAY_START_HOOK", None)
    before = os.environ.pop("HELIOSTAT_HOOK_PYTHONPATH", "")
    if before:
        os.environ["PYTHONPATH"] = before
    else:
        os.environ.pop("PYTHONPATH", None)
    if not head:
        return
    try:
        from ray._private import ray_constants, services

        start = services.start_ray_process
        dashboard = ray_constants.PROCESS_TYPE_DASHBOARD
    except (ImportError, AttributeError):
        return
    ray_params.ray_client_server_port = None

    def start_trimmed(command, process_type, *args, **kwargs):
        if process_type == dashboard and not any(part.startswith("--modules-to-load") for part in command):
            command = list(command) + ["--modules-to-load=JobHead,StateHead,ReportHead,NodeHead,UsageStatsHead"]
        return start(command, process_type, *args, **kwargs)

    services.start_ray_process = start_trimmed
)";
}

}  // namespace helio::ray
