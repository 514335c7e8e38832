#include "control/assignment.h"

#include "model/ray_version.h"

#include "control/plan.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::control {
namespace {

constexpr Bytes kObjectStoreMin = 80_MiB;   ///< Ray refuses less than 75 MiB
constexpr Bytes kHeadReserve{768LL << 20};  ///< Ray's own processes, before tasks may ask for memory
constexpr Bytes kWorkerReserve = 256_MiB;
constexpr Bytes kNodeDisk = 10_GiB;
constexpr int kMasterPort = 29500;
constexpr Duration kLookMost = 1s;  ///< at the use of a long-lived cluster: no more often, and no less
constexpr Duration kLookLeast = 10s;
constexpr std::string_view kPackageScheme = "helio://packages/";

struct Rows {
  model::Node node;
  model::Job job;
  model::Attempt attempt;
  model::Cluster cluster;
  model::Image image;
  StoredPlan plan;
  std::optional<StoredPlan> cluster_head;  ///< of the long-lived cluster that the job runs in
};

Result<Rows> load(store::ReadTx& tx, const NodeId& id) {
  Rows rows;
  HELIO_TRY(node, tx.get<model::Node>(id.value));
  rows.node = std::move(node);
  if (rows.node.state == model::NodeState::gone) return fail(ErrorCode::not_found, "node '{}' is gone", id.value);
  HELIO_TRY(job, tx.get<model::Job>(rows.node.job.value));
  rows.job = std::move(job);
  HELIO_TRY(attempt, tx.get<model::Attempt>(rows.node.attempt.value));
  rows.attempt = std::move(attempt);
  HELIO_TRY(cluster, tx.get<model::Cluster>(rows.node.cluster.value));
  rows.cluster = std::move(cluster);
  HELIO_TRY(image, tx.get<model::Image>(rows.attempt.image));
  rows.image = std::move(image);
  HELIO_TRY(plan, tx.get<StoredPlan>(id.value));
  rows.plan = std::move(plan);
  if (rows.attempt.guest_of) {
    HELIO_TRY(theirs, tx.get<model::Attempt>(rows.attempt.guest_of->value));
    HELIO_TRY(head, tx.get<StoredPlan>(theirs.placement.front().node.value));
    rows.cluster_head = std::move(head);
  }
  return rows;
}

const model::WorkerGroup* group_of(const Rows& rows) {
  if (rows.node.role == model::Role::head) return nullptr;
  const auto found = std::ranges::find(rows.job.spec.workers, rows.node.placement.group, &model::WorkerGroup::name);
  return found == rows.job.spec.workers.end() ? nullptr : &*found;
}

bool head_only(const Rows& rows) { return rows.attempt.placement.size() <= 1; }

/// Where the job's own processes run: the workers, or the head when it is alone.
bool does_work(const Rows& rows, const model::Placement& place) { return head_only(rows) || place.role == model::Role::worker; }

std::string joined(const std::vector<std::int32_t>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

/// The torch.distributed family: a process per GPU of the workers, or one per worker when they have none.
void add_ranks(const Rows& rows, std::map<std::string, std::string>& env) {
  std::int32_t gpus = 0;
  std::int32_t workers = 0;
  for (const model::Placement& place : rows.attempt.placement) {
    if (!does_work(rows, place)) continue;
    gpus += place.resources.gpus;
    ++workers;
  }
  std::int32_t before = 0;
  std::int32_t own = 0;
  std::int32_t per_node = 0;
  for (const model::Placement& place : rows.attempt.placement) {
    if (!does_work(rows, place)) continue;
    const std::int32_t processes = gpus > 0 ? place.resources.gpus : 1;
    if (place.index < rows.node.index) before += processes;
    if (place.index == rows.node.index) own = processes;
    per_node = std::max(per_node, processes);
  }
  const bool works = does_work(rows, rows.node.placement);
  env["WORLD_SIZE"] = std::to_string(gpus > 0 ? gpus : workers);
  env["RANK"] = std::to_string(works ? before : 0);
  env["NPROC_PER_NODE"] = std::to_string(works ? own : per_node);
  env["MASTER_ADDR"] = rows.plan.head_address;
  env["MASTER_PORT"] = std::to_string(kMasterPort);
}

/// What is the job's, wherever it runs.
void add_job(const Rows& rows, const AssignmentContext& context, std::map<std::string, std::string>& env) {
  const model::JobSpec& spec = rows.job.spec;
  env["HELIOSTAT_JOB_ID"] = rows.job.id.value;
  env["HELIOSTAT_ATTEMPT"] = std::to_string(rows.attempt.number);
  env["HELIOSTAT_WORKSPACE"] = spec.workspace;
  env["HELIOSTAT_QUEUE"] = spec.queue;
  env["HELIOSTAT_CHECKPOINT_DIR"] = context.home.job_checkpoints(rows.job.id.value);
  env["HELIOSTAT_OUTPUT_DIR"] = context.home.job_outputs(rows.job.id.value);
  env["HELIOSTAT_TENSORBOARD_DIR"] = context.home.job_outputs(rows.job.id.value) + "/tensorboard";
  env["HELIOSTAT_GRACE_SECONDS"] = std::to_string(std::chrono::ceil<std::chrono::seconds>(spec.limits.stop_grace.d).count());
  if (spec.limits.total.d > Duration(0) && rows.job.first_admitted) {
    env["HELIOSTAT_DEADLINE"] = std::to_string((*rows.job.first_admitted + spec.limits.total.d).us / 1'000'000);
  }
}

void add_platform(const Rows& rows, const AssignmentContext& context, std::map<std::string, std::string>& env) {
  add_job(rows, context, env);
  if (rows.cluster_head) return;  // the rest is the cluster's, whose processes have it
  add_ranks(rows, env);
  if (!context.interface.empty()) {
    env.try_emplace("NCCL_SOCKET_IFNAME", context.interface);  // a job that names one knows better
    env.try_emplace("GLOO_SOCKET_IFNAME", context.interface);
  }
  const std::vector<std::int32_t>& gpus = rows.node.placement.gpus;
  env["CUDA_VISIBLE_DEVICES"] = joined(gpus);
  env["NVIDIA_VISIBLE_DEVICES"] = gpus.empty() ? "void" : joined(gpus);

  const model::JobSpec& spec = rows.job.spec;
  const auto nodes = static_cast<std::int64_t>(rows.attempt.placement.size());
  // Ray's client server, which a long-lived cluster always has, forks for each client, and what gRPC does in the child can crash it.
  if (spec.type == model::JobType::cluster) env.try_emplace("GRPC_ENABLE_FORK_SUPPORT", "false");
  // Ray's own is refused without the cluster's token.
  if (!context.url.empty()) env["RAY_OVERRIDE_DASHBOARD_URL"] = fmt::format("{}/jobs/{}/dashboard/", context.url, rows.job.id.value);
  env["HELIOSTAT_NUM_NODES"] = std::to_string(nodes);
  env["HELIOSTAT_NUM_WORKERS"] = std::to_string(nodes - 1);
  env["HELIOSTAT_NODE_ID"] = rows.node.id.value;
  env["HELIOSTAT_NODE_INDEX"] = std::to_string(rows.node.index);
  env["HELIOSTAT_NODE_GROUP"] = rows.node.placement.group;
  env["HELIOSTAT_GPUS_PER_NODE"] = std::to_string(rows.node.placement.resources.gpus);
}

Result<std::map<std::string, std::string>> environment(store::ReadTx& tx, const Rows& rows, const AssignmentContext& context) {
  std::map<std::string, std::string> env;
  for (const model::EnvVar& variable : rows.job.spec.env) {
    if (!variable.secret) {
      env[variable.name] = variable.value;
      continue;
    }
    HELIO_TRY(sealed, tx.get_secret("job/" + rows.job.id.value + "/env/" + variable.name));
    if (!sealed) return fail(ErrorCode::internal, "the sealed value of {} is missing", variable.name);
    HELIO_TRY(clear, context.sealer.open(*sealed));
    env[variable.name] = std::move(clear);
  }
  add_platform(rows, context, env);
  return env;
}

/// 30 % of the node's memory unless the job says otherwise, never more than the shared memory that the flavor promises.
Bytes object_store(const Rows& rows) {
  const model::Resources& has = rows.node.placement.resources;
  const model::WorkerGroup* group = group_of(rows);
  const std::optional<Bytes> asked = group != nullptr                      ? group->object_store_memory
                                     : rows.node.role == model::Role::head ? rows.job.spec.head.object_store_memory
                                                                           : std::nullopt;
  Bytes size = asked.value_or(Bytes{has.memory.n / 10 * 3});
  if (has.shm.n > 0) size = std::min(size, has.shm);
  return std::max(size, kObjectStoreMin);
}

void add_logical(const Rows& rows, model::Assignment& out) {
  const model::Resources& has = rows.node.placement.resources;
  const bool head = rows.node.role == model::Role::head;
  out.object_store_memory = object_store(rows);
  const Bytes reserve = head ? kHeadReserve : kWorkerReserve;
  // A small node still offers a quarter: what Ray counts is no limit, the node's is.
  out.memory = std::max(has.memory - out.object_store_memory - reserve, Bytes{has.memory.n / 4});
  const bool schedulable = !head || rows.job.spec.head.schedulable.value_or(head_only(rows));
  out.num_cpus = schedulable ? static_cast<double>(has.cpu.n) / 1000 : 0;
  out.num_gpus = schedulable ? has.gpus : 0;
  if (const model::WorkerGroup* group = group_of(rows)) {
    out.resources = group->resources;
    out.labels = group->labels;
  }
  out.memory_limit = has.memory;
}

void collect_packages(const json::Value& value, const model::Home& home, std::vector<model::PackageRef>& out) {
  if (value.is_array()) {
    for (const json::Value& item : value.get_array()) collect_packages(item, home, out);
    return;
  }
  if (!value.is_string()) return;
  const std::string uri(value.get_string());
  if (!uri.starts_with(kPackageScheme) || std::ranges::find(out, uri, &model::PackageRef::uri) != out.end()) return;
  std::string digest = uri.substr(kPackageScheme.size());
  if (const auto dot = digest.find('.'); dot != std::string::npos) digest.resize(dot);
  out.push_back({PackageId(digest), uri, home.package(digest), Bytes{0}});
}

/// `requirements` is a shortcut for pip: added to what runtime_env lists already.
std::optional<json::Object> runtime_env(const model::JobSpec& spec) {
  std::optional<json::Object> out = spec.runtime_env;
  if (spec.requirements.empty()) return out;
  if (!out) out.emplace();
  json::Value* pip = out->if_contains("pip");
  json::Array* list = nullptr;
  if (pip == nullptr) {
    list = &out->emplace("pip", json::Array{}).first->value().get_array();
  } else if (pip->is_array()) {
    list = &pip->get_array();
  } else if (pip->is_object() && pip->get_object().contains("packages") && pip->get_object().at("packages").is_array()) {
    list = &pip->get_object().at("packages").get_array();
  }
  if (list == nullptr) return out;  // a requirements file: validation has refused both together
  for (const std::string& requirement : spec.requirements) {
    const auto known = [&](const json::Value& item) { return item.is_string() && item.get_string() == requirement; };
    if (std::ranges::none_of(*list, known)) list->emplace_back(requirement);
  }
  return out;
}

std::string in_quotes(const std::string& word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

model::DriverSpec driver(const Rows& rows, const AssignmentContext& context) {
  const model::JobSpec& spec = rows.job.spec;
  model::DriverSpec out;
  out.submission_id = rows.attempt.id.value;
  out.entrypoint = shell_line(spec.entrypoint, script_path(context.home, rows.job.id, spec.entrypoint));
  out.runtime_env = runtime_env(spec);
  out.metadata = {
      {"heliostat_job", rows.job.id.value}, {"heliostat_attempt", std::to_string(rows.attempt.number)}, {"heliostat_name", spec.name}};
  out.resources = spec.entrypoint.resources;
  if (out.runtime_env) {
    for (const std::string_view field : {"working_dir", "py_modules"}) {
      if (const json::Value* value = out.runtime_env->if_contains(field)) collect_packages(*value, context.home, out.packages);
    }
  }
  return out;
}

/// A submitter has no Ray: the variables of the job go with its driver, whose own count more, and the way to the cluster stands in the
/// places of the head.
void make_submitter(const Rows& rows, model::Assignment& out) {
  out.submitter = true;
  out.head_temp_dir = rows.cluster_head->temp_dir;
  out.head_address = rows.cluster_head->address;
  out.head_port_base = rows.cluster_head->port_base;
  std::optional<json::Object>& runtime_env = out.driver->runtime_env;
  if (!runtime_env) runtime_env.emplace();
  json::Object vars;
  for (const auto& [name, value] : out.env) vars[name] = value;
  if (const json::Value* own = runtime_env->if_contains("env_vars"); own != nullptr && own->is_object()) {
    for (const auto& [name, value] : own->get_object()) vars[name] = value;
  }
  (*runtime_env)["env_vars"] = std::move(vars);
}

}  // namespace

std::string shell_quote(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("@%+=:,./-_").contains(c);
  };
  return !word.empty() && std::ranges::all_of(word, plain) ? word : in_quotes(word);
}

std::string script_path(const model::Home& home, const JobId& job, const model::Entrypoint& entrypoint) {
  return home.job(job.value) + (entrypoint.language == "python" ? "/script.py" : "/script.sh");
}

std::string shell_line(const model::Entrypoint& entrypoint, const std::string& script) {
  if (entrypoint.command) return *entrypoint.command;
  if (entrypoint.script) {
    const std::string_view runner = entrypoint.language == "python" ? "python" : entrypoint.language == "sh" ? "sh -e" : "bash -e";
    return fmt::format("{} {}", runner, shell_quote(script));
  }
  std::string line;
  for (const std::string& word : entrypoint.argv.value_or(std::vector<std::string>{})) {
    if (!line.empty()) line += ' ';
    // A first word such as A=b would be an assignment to the shell: in quotes it is a command.
    line += line.empty() && word.contains('=') ? in_quotes(word) : shell_quote(word);
  }
  return line;
}

Result<model::Assignment> build_assignment(store::ReadTx& tx, const AssignmentContext& context, const NodeId& id) {
  HELIO_TRY(rows, load(tx, id));
  model::Assignment out;
  const bool head = rows.node.role == model::Role::head;
  out.node = rows.node.id;
  out.attempt = rows.node.attempt;
  out.cluster = rows.node.cluster;
  out.generation = rows.node.generation;
  out.role = rows.node.role;
  out.index = rows.node.index;
  out.phase = rows.node.desired;
  out.prefix = rows.image.prefix;
  out.ray_version = rows.attempt.ray_version;
  out.temp_dir = rows.plan.temp_dir;
  out.head_temp_dir = rows.plan.head_temp_dir;
  out.work_dir = rows.plan.work_dir;
  if (model::ray_has_tokens(rows.attempt.ray_version)) out.ray_token_file = rows.plan.ray_token_file;
  out.address = rows.plan.address;
  out.head_address = rows.plan.head_address;
  out.port_base = rows.plan.port_base;
  out.head_port_base = rows.plan.head_port_base;
  out.cgroup = rows.plan.cgroup;
  out.nodes = rows.cluster.nodes;
  out.ray_node_tag = rows.node.id.value;
  out.group = rows.node.placement.group;
  if (!rows.cluster_head) add_logical(rows, out);
  HELIO_TRY(env, environment(tx, rows, context));
  out.env = std::move(env);
  out.ray = rows.job.spec.ray;
  out.stop_grace = rows.job.spec.limits.stop_grace;
  const bool is_cluster = rows.job.spec.type == model::JobType::cluster;
  if (head && !is_cluster) out.driver = driver(rows, context);
  if (rows.cluster_head) make_submitter(rows, out);
  const Duration idle = rows.job.spec.limits.idle.value_or(Span{0s}).d;
  if (head && is_cluster && idle > Duration(0)) out.watch_idle.d = std::clamp<Duration>(idle / 6, kLookMost, kLookLeast);
  out.stop_driver = head && rows.node.stop_driver;
  out.leaving = rows.node.leaving;
  if (head && is_cluster) {
    store::ListQuery of_cluster;
    of_cluster.parent = rows.cluster.id.value;
    HELIO_TRY(nodes, tx.list<model::Node>(of_cluster));
    for (const model::Node& node : nodes.items) {
      if (node.leaving) out.leaving_nodes.push_back(node.id);
    }
  }
  const Bytes pool_disk = context.settings.pool.node_disk.n > 0 ? context.settings.pool.node_disk : kNodeDisk;
  out.disk_limit = rows.job.spec.disk_limit.n > 0 ? rows.job.spec.disk_limit : pool_disk;
  out.log_limit = rows.job.spec.log_limit;
  return out;
}

Result<model::Assignment> build_assignment(store::Store& store, const AssignmentContext& context, const NodeId& node) {
  model::Assignment out;
  HELIO_CHECK_OK(store.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(built, build_assignment(tx, context, node));
    out = std::move(built);
    return {};
  }));
  return out;
}

Result<provider::NodeSpec> build_node_spec(store::Store& store, const AssignmentContext& context, const NodeId& id,
                                           const std::string& daemon_url) {
  provider::NodeSpec out;
  out.daemon_url = daemon_url;
  const auto open = [&](store::ReadTx& tx, const std::string& key) -> Result<std::string> {
    HELIO_TRY(sealed, tx.get_secret(key));
    if (!sealed) return fail(ErrorCode::internal, "the secret {} is missing", key);
    return context.sealer.open(*sealed);
  };
  HELIO_CHECK_OK(store.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(assignment, build_assignment(tx, context, id));
    HELIO_TRY(node, tx.get<model::Node>(id.value));
    HELIO_TRY(agent_token, open(tx, "node/" + id.value + "/token"));
    out.agent_token = std::move(agent_token);
    if (!assignment.ray_token_file.empty()) {
      HELIO_TRY(attempt, tx.get<model::Attempt>(assignment.attempt.value));
      HELIO_TRY(ray_token, open(tx, "attempt/" + attempt.guest_of.value_or(attempt.id).value + "/ray_token"));
      out.ray_token = std::move(ray_token);
    }
    out.limits = node.placement.resources;
    out.gpus = node.placement.gpus;
    out.assignment = std::move(assignment);
    return {};
  }));
  return out;
}

}  // namespace helio::control
