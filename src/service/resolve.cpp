#include "service/resolve.h"

#include "model/ray_version.h"
#include "service/entrypoint.h"
#include "service/fields.h"
#include "service/runtime_env.h"
#include "service/scope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace helio::service {
namespace {

/// Ray starts no smaller object store.
constexpr Bytes kMinObjectStore{75LL << 20};
/// What Ray's own processes need beside the object store.
constexpr Bytes kRayReserve{160LL << 20};
constexpr std::int32_t kMaxNodes = 10'000;
constexpr std::array<std::string_view, 7> kPerNode{
    "WORLD_SIZE", "RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"};
constexpr Span kDay{std::chrono::hours(24)};
constexpr Span kIdle{std::chrono::hours(1)};             ///< of a long-lived cluster that says nothing about it
constexpr Span kShortestIdle{std::chrono::seconds(10)};  ///< how often its agent looks

/// One resolution under way: the spec is completed in place.
class Resolver {
 public:
  Resolver(const model::JobSpec& spec, const Catalog& catalog, const model::JobSpec* host) : catalog_(catalog), host_(host) {
    out_.spec = spec;
  }

  Result<Resolved> run();

 private:
  Result<void> cluster();
  Result<Resolved> guest();
  Result<void> identity();
  Result<void> image();
  Result<void> head();
  Result<void> workers();
  Result<void> group(std::size_t index);
  Result<void> runtime_env();
  Result<void> env();
  Result<void> mounts();
  Result<void> policies();
  Result<void> driver_fits();
  Result<void> shape_fits();
  void size_warnings();

  Result<const model::Flavor*> flavor(const std::string& name, const std::string& path) const;
  static Result<void> object_store(std::optional<Bytes>& wanted, const model::Flavor& flavor, const std::string& path);
  void warn(std::string text) { out_.warnings.push_back(std::move(text)); }

  const Catalog& catalog_;
  const model::JobSpec* host_;  ///< the cluster that the job runs in, if it has none of its own
  Resolved out_;
};

template <class T>
std::vector<std::string> names_of(const std::map<std::string, T>& items) {
  std::vector<std::string> names;
  for (const auto& [name, item] : items) names.push_back(name);
  return names;
}

Result<void> check_span(Span span, Span least, Span most, const std::string& path) {
  if (span >= least && span <= most) return {};
  return wrong(path, "expected {} to {}", format_duration(least.d), format_duration(most.d));
}

Result<void> check_quantity(double quantity, const std::string& path) {
  if (std::isfinite(quantity) && quantity >= 0 && quantity <= 1e9) return {};
  return wrong(path, "expected a number of 0 to 1000000000");
}

/// Ray's names of its own resources cannot be taken.
Result<void> check_resource_name(std::string_view name, const std::string& path) {
  static constexpr std::array<std::string_view, 4> kTaken{"CPU", "GPU", "memory", "object_store_memory"};
  if (name.empty() || name.size() > 100 || has_control(name)) return wrong(path, "a resource needs a name of 1 to 100 characters");
  if (is_one_of(name, kTaken)) return wrong(path, "'{}' is Ray's own resource; it comes from the flavor", name);
  if (name.starts_with("node:") || name.starts_with("bundle_") || name.starts_with("accelerator_type:")) {
    return wrong(path, "names that start with node:, bundle_ or accelerator_type: belong to Ray");
  }
  return {};
}

/// What one node has too little of for the driver.
struct Lack {
  std::string field;
  std::string has;
};
std::optional<Lack> lack_of(const model::EntrypointResources& asked, const model::Resources& node, Bytes object_store,
                            const std::map<std::string, double>& custom) {
  if (asked.num_cpus * 1000 > static_cast<double>(node.cpu.n)) return Lack{".num_cpus", format_cpu(node.cpu)};
  if (asked.num_gpus > node.gpus) return Lack{".num_gpus", std::to_string(node.gpus)};
  if (asked.memory > node.memory - object_store) return Lack{".memory", format_bytes(node.memory - object_store)};
  for (const auto& [name, quantity] : asked.resources) {
    const auto found = custom.find(name);
    const double has = found == custom.end() ? 0 : found->second;
    if (quantity > has) return Lack{member(".resources", name), fmt::format("{:g}", has)};
  }
  return std::nullopt;
}

/// A name that can stand in a path and in a host name: 1 to 63 of a-z, 0-9 and -, not at the ends.
bool is_host_label(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' && std::ranges::all_of(name, fits);
}

Result<Resolved> Resolver::run() {
  const bool is_cluster = out_.spec.type == model::JobType::cluster;
  if (host_ != nullptr && !is_cluster) return guest();
  HELIO_CHECK_OK(is_cluster ? cluster() : resolve_entrypoint(out_.spec.entrypoint));
  HELIO_CHECK_OK(identity());
  HELIO_CHECK_OK(image());
  HELIO_CHECK_OK(head());
  HELIO_CHECK_OK(workers());
  HELIO_CHECK_OK(runtime_env());
  HELIO_CHECK_OK(env());
  HELIO_CHECK_OK(mounts());
  HELIO_CHECK_OK(policies());
  HELIO_CHECK_OK(driver_fits());
  HELIO_CHECK_OK(shape_fits());
  size_warnings();
  if (!is_cluster) {
    for (std::string& text : entrypoint_warnings(out_.spec.entrypoint)) warn(std::move(text));
  }
  return std::move(out_);
}

/// What only jobs have belongs to those that are submitted into the cluster.
Result<void> Resolver::cluster() {
  model::JobSpec& spec = out_.spec;
  const model::Entrypoint& entrypoint = spec.entrypoint;
  if (entrypoint.argv || entrypoint.command || entrypoint.script || entrypoint.resources) {
    return wrong("$.entrypoint", "a long-lived cluster runs nothing by itself; submit jobs into it when it is ready");
  }
  if (!is_host_label(spec.name)) {
    return wrong("$.name", "a cluster needs a name of 1 to 63 letters a-z, digits and '-', not at its ends; got '{}'", spec.name);
  }
  if (spec.cluster) return wrong("$.cluster", "a cluster does not run in another one; leave it out");
  if (spec.runtime_env) return wrong("$.runtime_env", "belongs to the jobs that are submitted into the cluster");
  if (!spec.requirements.empty()) return wrong("$.requirements", "belongs to the jobs that are submitted into the cluster");
  if (spec.completion != model::Completion::driver) return wrong("$.completion", "a long-lived cluster has no end of its own to judge");
  // People look at it, and clients connect to it.
  spec.ray.dashboard_full = true;
  if (!spec.limits.idle) spec.limits.idle = kIdle;
  const Span idle = *spec.limits.idle;
  if (idle != Span{0s} && (idle < kShortestIdle || idle > Span{std::chrono::hours(24 * 366)})) {
    return wrong("$.limits.idle", "expected 10s to 366 days, or 0s for never; got {}", format_duration(idle.d));
  }
  return {};
}

/// The nodes are the cluster's, and so is all that belongs to nodes; the job brings its code and its policies.
Result<Resolved> Resolver::guest() {
  model::JobSpec& spec = out_.spec;
  const model::JobSpec unsaid;
  const std::string& name = *spec.cluster;
  const auto of_cluster = [&](const std::string& path) {
    return wrong(path, "is that of the cluster '{}', which the job runs in; leave it out, or leave out cluster", name);
  };
  if (spec.head.flavor || spec.head.schedulable || spec.head.object_store_memory) return of_cluster("$.head");
  if (!spec.workers.empty()) return of_cluster("$.workers");
  if (!spec.mounts.empty()) return of_cluster("$.mounts");
  if (spec.disk_limit != unsaid.disk_limit) return of_cluster("$.disk_limit");
  if (spec.image != unsaid.image && spec.image != host_->image) return of_cluster("$.image");
  if (spec.retention.nodes != unsaid.retention.nodes) return of_cluster("$.retention.nodes");
  if (spec.completion != unsaid.completion) {
    return wrong("$.completion", "expected driver: the nodes of the cluster '{}' are not the job's, and do not decide about it", name);
  }
  if (spec.entrypoint.resources) {
    return wrong("$.entrypoint.resources",
                 "in a long-lived cluster the entrypoint runs on the head; ask for resources in the tasks and actors of the program");
  }
  for (std::size_t i = 0; i < spec.env.size(); ++i) {
    if (spec.env[i].value.contains('$')) {
      warn(fmt::format("{}: inside a cluster Ray replaces $NAME and ${{NAME}} in the values of variables", spec.env[i].name));
    }
    if (!spec.env[i].secret) continue;
    return wrong(
        element("$.env", i) + ".secret",
        "everybody who may look at the cluster '{}' can read the variables of its jobs; give the secret to the cluster, or let the "
        "program read it from a file",
        name);
  }
  spec.image = host_->image;
  if (spec.limits.stop_grace != unsaid.limits.stop_grace && spec.limits.stop_grace != host_->limits.stop_grace) {
    warn(fmt::format("limits.stop_grace is the cluster's: {}", format_duration(host_->limits.stop_grace.d)));
  }
  spec.limits.stop_grace = host_->limits.stop_grace;
  HELIO_CHECK_OK(resolve_entrypoint(spec.entrypoint));
  HELIO_CHECK_OK(identity());
  HELIO_CHECK_OK(image());
  HELIO_CHECK_OK(runtime_env());
  HELIO_CHECK_OK(env());
  HELIO_CHECK_OK(policies());
  HELIO_TRY(members, model::members_of(spec, catalog_.flavors));
  out_.members = std::move(members);
  for (std::string& text : entrypoint_warnings(spec.entrypoint)) warn(std::move(text));
  return std::move(out_);
}

Result<void> Resolver::identity() {
  model::JobSpec& spec = out_.spec;
  if (spec.name.empty()) spec.name = default_name(spec.entrypoint);
  if (spec.name.size() > 128) return wrong("$.name", "the name has {} bytes; at most 128 are allowed", spec.name.size());
  if (has_control(spec.name) || is_blank(spec.name)) return wrong("$.name", "a name cannot be blank or hold control characters");
  HELIO_CHECK_OK(check_workspace({}, spec.workspace));
  if (spec.queue != "default") return wrong("$.queue", "no queue '{}'; this version has one, 'default'", spec.queue);
  if (spec.priority < 1 || spec.priority > 9) return wrong("$.priority", "expected 1 to 9 (9 goes first), got {}", spec.priority);
  if (spec.labels.size() > 64) return wrong("$.labels", "at most 64 labels are allowed, got {}", spec.labels.size());
  for (const auto& [key, value] : spec.labels) {
    const std::string path = member("$.labels", key);
    if (key.empty() || key.size() > 128 || has_control(key)) return wrong(path, "a label needs a name of 1 to 128 characters");
    if (value.size() > 1024 || has_control(value))
      return wrong(path, "a label holds at most 1024 characters, none of them control characters");
  }
  return {};
}

Result<void> Resolver::image() {
  const auto found = catalog_.images.find(out_.spec.image);
  if (found != catalog_.images.end()) return {};
  return fail(Error(ErrorCode::not_found, fmt::format("no image '{}'; there are: {}; add one with: helio image add NAME --python PREFIX",
                                                      out_.spec.image, listed(names_of(catalog_.images))))
                  .at("$.image")
                  .with("image", out_.spec.image));
}

Result<const model::Flavor*> Resolver::flavor(const std::string& name, const std::string& path) const {
  const auto found = catalog_.flavors.find(name);
  if (found != catalog_.flavors.end()) return &found->second;
  return fail(Error(ErrorCode::not_found, fmt::format("no flavor '{}'; there are: {}", name, listed(names_of(catalog_.flavors))))
                  .at(path)
                  .with("flavor", name));
}

Result<void> Resolver::object_store(std::optional<Bytes>& wanted, const model::Flavor& flavor, const std::string& path) {
  const model::Resources& node = flavor.resources;
  const Bytes shm = node.shm.n > 0 ? node.shm : node.memory;
  const Bytes most = std::min(shm, node.memory - kRayReserve);
  if (!wanted) {
    wanted = std::max(kMinObjectStore, std::min(Bytes{node.memory.n / 10 * 3}, most));
    return {};
  }
  if (*wanted < kMinObjectStore) {
    return wrong(path, "Ray needs an object store of at least {}, got {}", format_bytes(kMinObjectStore), format_bytes(*wanted));
  }
  if (*wanted > shm) {
    return wrong(path, "an object store of {} does not fit the {} of shared memory of flavor '{}'", format_bytes(*wanted),
                 format_bytes(shm), flavor.name.value);
  }
  if (*wanted > most) {
    return wrong(path, "an object store of {} leaves too little of the {} of flavor '{}' for Ray and the program: at most {}",
                 format_bytes(*wanted), format_bytes(node.memory), flavor.name.value, format_bytes(most));
  }
  return {};
}

Result<void> Resolver::head() {
  model::HeadSpec& head = out_.spec.head;
  const bool alone = out_.spec.workers.empty();
  if (!head.schedulable) head.schedulable = alone;
  if (alone && !*head.schedulable) {
    return wrong("$.head.schedulable",
                 "without workers the head must be schedulable, or no task could ever run; add workers or take this out");
  }
  const model::PoolSettings& pool = catalog_.settings.pool;
  if (!head.flavor) head.flavor = alone ? pool.worker_flavor : pool.head_flavor;
  HELIO_TRY(shape, flavor(*head.flavor, "$.head.flavor"));
  return object_store(head.object_store_memory, *shape, "$.head.object_store_memory");
}

Result<void> Resolver::workers() {
  std::set<std::string_view> names;
  std::int64_t nodes = 1;
  if (out_.spec.workers.size() > 100) return wrong("$.workers", "at most 100 groups are allowed, got {}", out_.spec.workers.size());
  for (std::size_t i = 0; i < out_.spec.workers.size(); ++i) {
    HELIO_CHECK_OK(group(i));
    const model::WorkerGroup& workers = out_.spec.workers[i];
    const std::string path = element("$.workers", i);
    if (!names.insert(workers.name).second) {
      return wrong(path + ".name", "the name '{}' is taken by another group; give each group its own", workers.name);
    }
    nodes += workers.count;
    if (nodes > kMaxNodes && catalog_.hosts.empty()) return wrong(path + ".count", "a cluster has at most {} nodes", kMaxNodes);
  }
  return {};
}

Result<void> Resolver::group(std::size_t index) {
  model::WorkerGroup& workers = out_.spec.workers[index];
  const std::string path = element("$.workers", index);
  if (workers.count < 1) {
    return wrong(path + ".count", "expected 1 or more, got {}; leave the group out to run on the head alone", workers.count);
  }
  if (workers.name.empty()) return wrong(path + ".name", "a group needs a name");
  if (workers.name == "head") return wrong(path + ".name", "'head' is the head's own group; take another name");
  HELIO_CHECK_OK(check_label_value(workers.name, path + ".name"));
  if (!workers.flavor) workers.flavor = catalog_.settings.pool.worker_flavor;
  HELIO_TRY(shape, flavor(*workers.flavor, path + ".flavor"));
  if (workers.labels.size() > 64) return wrong(path + ".labels", "at most 64 labels are allowed, got {}", workers.labels.size());
  for (const auto& [key, value] : workers.labels) {
    const std::string at = member(path + ".labels", key);
    HELIO_CHECK_OK(check_label_key(key, at));
    HELIO_CHECK_OK(check_label_value(value, at));
  }
  if (workers.resources.size() > 64)
    return wrong(path + ".resources", "at most 64 resources are allowed, got {}", workers.resources.size());
  for (const auto& [name, quantity] : workers.resources) {
    const std::string at = member(path + ".resources", name);
    HELIO_CHECK_OK(check_resource_name(name, at));
    HELIO_CHECK_OK(check_quantity(quantity, at));
  }
  return object_store(workers.object_store_memory, *shape, path + ".object_store_memory");
}

Result<void> Resolver::runtime_env() {
  model::JobSpec& spec = out_.spec;
  if (spec.runtime_env) {
    RuntimeEnvContext context;
    context.ray_version = catalog_.images.at(spec.image).ray_version;
    context.folders = catalog_.settings.pool.mounts;
    context.has_package = catalog_.has_package;
    HELIO_CHECK_OK(check_runtime_env(*spec.runtime_env, "$.runtime_env", context));
  }
  if (spec.requirements.empty()) return {};
  for (std::size_t i = 0; i < spec.requirements.size(); ++i) {
    const std::string& line = spec.requirements[i];
    if (is_blank(line) || has_control(line) || line.size() > 1000) {
      return wrong(element("$.requirements", i), "expected one requirement such as numpy==2.1");
    }
  }
  json::Object& env = spec.runtime_env ? *spec.runtime_env : spec.runtime_env.emplace();
  for (const std::string_view key : {"pip", "uv", "conda"}) {
    if (env.contains(key)) {
      return wrong("$.requirements", "is a shortcut for runtime_env.pip, and runtime_env.{} is there too; use one of them", key);
    }
  }
  for (const std::string_view key : {"image_uri", "container"}) {
    if (env.contains(key)) return wrong("$.requirements", "beside runtime_env.{} only config and env_vars are allowed", key);
  }
  env["pip"] = json::encode(spec.requirements);
  spec.requirements.clear();
  return {};
}

Result<void> Resolver::env() {
  model::JobSpec& spec = out_.spec;
  const json::Object* inner = nullptr;
  if (spec.runtime_env) {
    const json::Value* vars = spec.runtime_env->if_contains("env_vars");
    if (vars != nullptr && vars->is_object()) inner = &vars->get_object();
  }
  std::set<std::string> seen;
  std::size_t total = 0;
  std::vector<model::EnvVar> kept;
  for (std::size_t i = 0; i < spec.env.size(); ++i) {
    model::EnvVar& var = spec.env[i];
    const std::string path = element("$.env", i);
    HELIO_CHECK_OK(check_variable(var.name, var.value, path + ".name", path + ".value"));
    if (is_one_of(var.name, kPerNode)) {
      return wrong(path + ".name",
                   "{} differs from node to node and is set by heliostat; what your program shall see instead goes into "
                   "runtime_env.env_vars",
                   var.name);
    }
    if (var.secret && var.value == "***") {
      return wrong(path + ".value", "'***' is how a secret is shown, not what it is; give its value, or use `helio rerun`, which keeps it");
    }
    if (!seen.insert(var.name).second) return wrong(path + ".name", "the variable {} is given twice", var.name);
    total += var.name.size() + var.value.size() + 2;
    if (total > 512 * 1024) return wrong(path, "the variables have more than 524288 bytes together");
    if (inner != nullptr && inner->contains(var.name)) {
      warn(fmt::format("{} is in env and in runtime_env.env_vars; the latter counts", var.name));
      continue;
    }
    kept.push_back(std::move(var));
  }
  spec.env = std::move(kept);
  return {};
}

Result<void> Resolver::mounts() {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < out_.spec.mounts.size(); ++i) {
    model::Mount& mount = out_.spec.mounts[i];
    const std::string path = element("$.mounts", i);
    HELIO_TRY(source, normal_folder(mount.source, path + ".source"));
    mount.source = std::move(source);
    if (!mount.target) mount.target = mount.source;
    HELIO_TRY(target, normal_folder(*mount.target, path + ".target"));
    if (target != mount.source) {
      return wrong(path + ".target", "on the local backend a folder keeps its path: expected {}, or leave it out", mount.source);
    }
    mount.target = std::move(target);
    const std::vector<std::string>& roots = catalog_.settings.pool.mounts;
    if (!is_below_any(mount.source, roots)) {
      return wrong(path + ".source", "{} is not below a folder that jobs may mount ({}); an administrator sets pool.mounts in config.yaml",
                   mount.source, listed(roots));
    }
    if (!seen.insert(mount.source).second) return wrong(path + ".source", "{} is mounted twice", mount.source);
  }
  return {};
}

Result<void> Resolver::policies() {
  const model::JobSpec& spec = out_.spec;
  const model::RetryPolicy& retries = spec.retries;
  for (const auto& [name, count] : {std::pair{"platform", retries.platform}, std::pair{"node", retries.node},
                                    std::pair{"unknown", retries.unknown}, std::pair{"user", retries.user}}) {
    if (count < 0 || count > 1000) return wrong(member("$.retries", name), "expected 0 to 1000, got {}", count);
  }
  HELIO_CHECK_OK(check_span(retries.backoff, Span{0s}, kDay, "$.retries.backoff"));
  HELIO_CHECK_OK(check_span(retries.max_backoff, Span{0s}, kDay, "$.retries.max_backoff"));
  if (retries.max_backoff < retries.backoff)
    return wrong("$.retries.max_backoff", "is less than backoff ({})", format_duration(retries.backoff.d));

  const Span year{std::chrono::hours(24 * 366)};
  HELIO_CHECK_OK(check_span(spec.limits.pending, Span{0s}, year, "$.limits.pending"));
  HELIO_CHECK_OK(check_span(spec.limits.readiness, Span{1s}, kDay, "$.limits.readiness"));
  HELIO_CHECK_OK(check_span(spec.limits.run, Span{0s}, year, "$.limits.run"));
  HELIO_CHECK_OK(check_span(spec.limits.total, Span{0s}, year, "$.limits.total"));
  HELIO_CHECK_OK(check_span(spec.limits.stop_grace, Span{0s}, Span{1h}, "$.limits.stop_grace"));
  if (spec.limits.idle && spec.type != model::JobType::cluster) return wrong("$.limits.idle", "only a long-lived cluster can be idle");
  if (spec.limits.total.d.count() > 0 && spec.limits.run > spec.limits.total) {
    warn(fmt::format("limits.total ({}) is less than limits.run ({}) and ends the job first", format_duration(spec.limits.total.d),
                     format_duration(spec.limits.run.d)));
  }

  HELIO_CHECK_OK(check_span(spec.retention.time, Span{0s}, Span{std::chrono::hours(24 * 7)}, "$.retention.time"));
  const bool keeps = spec.retention.nodes != model::Retain::none;
  if (keeps && spec.retention.time.d.count() == 0) return wrong("$.retention.time", "how long shall the nodes be kept? Such as 10m");
  if (!keeps && spec.retention.time.d.count() > 0) {
    return wrong("$.retention.nodes", "nothing is kept; expected head or all beside a time, or leave the time out");
  }
  if (spec.checks != "none") return wrong("$.checks", "unknown checks '{}'; this version has none: expected 'none'", spec.checks);
  if (spec.log_limit < 1_MiB || spec.log_limit > Bytes{1LL << 44}) return wrong("$.log_limit", "expected 1MiB to 16TiB");
  if (spec.disk_limit.n != 0 && (spec.disk_limit < 64_MiB || spec.disk_limit > Bytes{1LL << 50})) {
    return wrong("$.disk_limit", "expected 64MiB to 1024TiB, or 0 for the pool's limit");
  }
  return {};
}

Result<void> Resolver::driver_fits() {
  const auto& asked = out_.spec.entrypoint.resources;
  if (!asked) return {};
  const std::string path = "$.entrypoint.resources";
  HELIO_CHECK_OK(check_quantity(asked->num_cpus, path + ".num_cpus"));
  HELIO_CHECK_OK(check_quantity(asked->num_gpus, path + ".num_gpus"));
  if (asked->num_gpus > 1 && asked->num_gpus != std::floor(asked->num_gpus)) {
    return wrong(path + ".num_gpus", "Ray takes parts of one GPU or whole ones, not {}", asked->num_gpus);
  }
  for (const auto& [name, quantity] : asked->resources) {
    HELIO_CHECK_OK(check_resource_name(name, member(path + ".resources", name)));
    HELIO_CHECK_OK(check_quantity(quantity, member(path + ".resources", name)));
  }

  std::optional<Lack> lack;
  if (*out_.spec.head.schedulable) {
    lack = lack_of(*asked, catalog_.flavors.at(*out_.spec.head.flavor).resources, *out_.spec.head.object_store_memory, {});
    if (!lack) return {};
  }
  for (const model::WorkerGroup& workers : out_.spec.workers) {
    lack = lack_of(*asked, catalog_.flavors.at(*workers.flavor).resources, *workers.object_store_memory, workers.resources);
    if (!lack) return {};
  }
  return wrong(path + lack->field, "no node of this cluster has that much for the entrypoint; a node of the last group has {}", lack->has);
}

Result<void> Resolver::shape_fits() {
  model::JobSpec clamped = out_.spec;
  bool too_many = false;
  std::int64_t room = kMaxNodes - 1;
  for (model::WorkerGroup& workers : clamped.workers) {
    too_many = too_many || workers.count > room;
    workers.count = static_cast<std::int32_t>(std::min<std::int64_t>(workers.count, room));
    room -= workers.count;
  }
  HELIO_TRY(members, model::members_of(clamped, catalog_.flavors));
  if (catalog_.hosts.empty()) {
    warn("the pool has no host yet; whether the shape fits is seen when one is there");
  } else if (const auto misfit = sched::never_fits(catalog_.hosts, members)) {
    std::string path = "$.head.flavor";
    std::int32_t asked = 1;
    for (std::size_t i = 0; i < clamped.workers.size(); ++i) {
      if (clamped.workers[i].name != misfit->group) continue;
      path = element("$.workers", i) + ".count";
      asked = out_.spec.workers[i].count;
    }
    return fail(Error(ErrorCode::resource_exhausted, "can never start here: " + misfit->message)
                    .at(path)
                    .with("largest", std::to_string(misfit->largest_count))
                    .with("asked", std::to_string(asked))
                    .with("constraint", misfit->constraint));
  }
  if (too_many) return wrong("$.workers", "a cluster has at most {} nodes", kMaxNodes);
  out_.members = std::move(members);
  return {};
}

void Resolver::size_warnings() {
  std::set<std::string> small;
  for (const sched::Member& node : out_.members) {
    if (node.resources.memory < 2_GiB) small.insert(node.flavor);
  }
  for (const std::string& name : small) {
    warn(fmt::format("nodes of flavor '{}' have {} of memory; Ray nodes under 2GiB often run out of it", name,
                     format_bytes(catalog_.flavors.at(name).resources.memory)));
  }
  std::set<std::string> unreal;
  for (const sched::Member& node : out_.members) {
    if (node.resources.gpus > 0 && catalog_.flavors.at(node.flavor).virtual_gpus) unreal.insert(node.flavor);
  }
  for (const std::string& name : unreal) warn(fmt::format("the GPUs of flavor '{}' are virtual: counted, but they do not exist", name));
  for (const model::WorkerGroup& workers : out_.spec.workers) {
    if (workers.count >= 8 && catalog_.flavors.at(*workers.flavor).resources.cpu <= MilliCpu{2000}) {
      warn(fmt::format("{} small workers of flavor '{}': few large nodes start faster and share memory better", workers.count,
                       *workers.flavor));
    }
  }
  const model::Image& image = catalog_.images.at(out_.spec.image);
  if (!model::ray_has_tokens(image.ray_version)) {
    warn(fmt::format("Ray {} of image '{}' knows no tokens: every user of this host can reach the cluster", image.ray_version,
                     image.name.value));
  }
}

}  // namespace

Result<Resolved> resolve(const model::JobSpec& spec, const Catalog& catalog, const model::JobSpec* cluster) {
  return Resolver(spec, catalog, cluster).run();
}

}  // namespace helio::service
