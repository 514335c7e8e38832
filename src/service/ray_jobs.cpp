#include "service/ray_jobs.h"

#include "service/fields.h"
#include "service/runtime_env.h"

#include <algorithm>
#include <charconv>

namespace helio::service {
namespace {

using model::Job;
using model::JobState;
using model::RayPackage;
using model::RaySubmission;

constexpr std::string_view kScheme = "gcs://";
constexpr std::string_view kShapePrefix = "heliostat.";

store::Event event_of(const Caller& caller, Timestamp now, std::string type, std::string message, const JobId& job = {}) {
  store::Event event;
  event.at = now;
  event.actor = caller.principal;
  event.type = std::move(type);
  event.message = std::move(message);
  event.job = job.value;
  return event;
}

/// As Ray makes them: without letters and digits that look alike.
std::string new_id(Rng& rng) {
  constexpr std::string_view kLetters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ123456789";
  std::string out = "raysubmit_";
  for (int i = 0; i < 16; ++i) out += kLetters[rng.below(kLetters.size())];
  return out;
}

Result<void> check_id(std::string_view id) {
  constexpr std::string_view kMarks = "._-";
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kMarks.contains(c);
  };
  const bool plain = !id.empty() && id.size() <= 128 && id != "." && id != ".." && std::ranges::all_of(id, fits);
  if (!plain) return wrong("$.submission_id", "expected 1 to 128 letters, digits and . _ -, got '{}'", id);
  return {};
}

Result<std::int32_t> number_of(const std::string& text, const std::string& path, std::int32_t least, std::int32_t most) {
  std::int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < least || value > most) {
    return wrong(path, "expected an integer from {} to {}, got '{}'", least, most, text);
  }
  return value;
}

/// The shape of the cluster: heliostat.workers, heliostat.flavor, … in the metadata, which a header of the request or the configuration
/// may have given before.
Result<void> apply_shape(const RaySubmit& request, model::JobSpec& spec) {
  std::map<std::string, std::pair<std::string, std::string>> wanted;  // name -> value, path
  for (const auto& [key, value] : request.metadata) {
    if (key.starts_with(kShapePrefix)) wanted[key.substr(kShapePrefix.size())] = {value, member("$.metadata", key)};
  }
  for (const auto& [key, value] : request.shape) wanted.try_emplace(key, value, "header.X-Heliostat-" + key);
  std::int32_t workers = 0;
  std::optional<std::string> flavor;
  for (const auto& [name, given] : wanted) {
    const auto& [value, path] = given;
    if (name == "workers") {
      HELIO_TRY(count, number_of(value, path, 0, 10'000));
      workers = count;
    } else if (name == "priority") {
      HELIO_TRY(priority, number_of(value, path, 1, 9));
      spec.priority = priority;
    } else if (name == "flavor") {
      flavor = value;
    } else if (name == "head-flavor") {
      spec.head.flavor = value;
    } else if (name == "image") {
      spec.image = value;
    } else if (name == "name") {
      spec.name = value;
    } else if (name == "queue") {
      spec.queue = value;
    } else {
      return wrong(path, "unknown; known are workers, flavor, head-flavor, image, name, priority and queue");
    }
  }
  if (workers == 0) return {};
  model::WorkerGroup group;
  group.count = workers;
  group.flavor = flavor;
  spec.workers.push_back(std::move(group));
  return {};
}

/// Whether an attempt of a job that is between two of them, or before its first, got as far as its entrypoint.
Result<bool> ever_ran(store::ReadTx& tx, const Job& job) {
  if (model::is_terminal(job.state) || job.attempts == 0) return false;
  store::ListQuery query;
  query.parent = job.id.value;
  HELIO_TRY(attempts, tx.list<model::Attempt>(query));
  return std::ranges::any_of(attempts.items, [](const model::Attempt& attempt) {
    return std::ranges::find(attempt.marks, std::string_view("submitted"), &model::Mark::name) != attempt.marks.end();
  });
}

}  // namespace

// --- what clients see -----------------------------------------------------------------------------------------------------------

std::string_view ray_status(const RayJob& ray) {
  switch (ray.job.state) {
    case JobState::queued:
    case JobState::starting:
    case JobState::restarting:
    case JobState::suspended:
    case JobState::stopping:
      return ray.ran ? "RUNNING" : "PENDING";
    case JobState::running:
      return "RUNNING";
    case JobState::succeeded:
      return "SUCCEEDED";
    case JobState::failed:
      return "FAILED";
    case JobState::stopped:
      return "STOPPED";
  }
  return "PENDING";
}

std::string ray_message(const RayJob& ray) {
  const Job& job = ray.job;
  std::string out;
  switch (job.state) {
    case JobState::succeeded:
      out = "Job finished successfully.";
      break;
    case JobState::stopped:
      out = "Job was intentionally stopped.";
      break;
    case JobState::failed:
      out = job.verdict ? job.verdict->message : job.reason;
      break;
    case JobState::running:
      out = "Job is currently running.";
      break;
    default:
      out = fmt::format("{}: {}.{}", json::enum_name(job.state), job.reason, ray.ran ? "" : " Job has not started yet.");
  }
  for (const std::string& note : ray.submission.notes) out += " (" + note + ")";
  return out;
}

std::string ray_error_type(const Job& job) {
  if (job.state != JobState::failed || !job.verdict) return {};
  const std::string& cause = job.verdict->cause;
  if (cause == model::cause::kRuntimeEnv) return "RUNTIME_ENV_SETUP_FAILURE";
  if (cause == model::cause::kEntrypointExit || cause == model::cause::kEntrypointSignal) return "JOB_ENTRYPOINT_COMMAND_ERROR";
  if (cause == model::cause::kEntrypointNotStarted) return "JOB_ENTRYPOINT_COMMAND_START_ERROR";
  if (cause == model::cause::kInfeasible) return "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE";
  if (cause == model::cause::kSupervisorDied) return "JOB_SUPERVISOR_ACTOR_DIED";
  std::string own = "HELIOSTAT_";
  for (const char c : cause) own += c == '.' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  return own;
}

// --- use cases ------------------------------------------------------------------------------------------------------------------

Result<std::string> RayJobs::own_address(const std::string& workspace, std::string_view uri, const std::string& path) {
  const std::string name(uri.substr(kScheme.size()));
  HELIO_TRY(package, store::get<RayPackage>(store_, workspace + "/" + name));
  if (!packages_.exists(package.sha256.value)) {
    return fail(Error(ErrorCode::not_found, fmt::format("package {} does not exist here any more; upload it again", uri)).at(path));
  }
  return fmt::format("helio://packages/{}.zip", package.sha256.value);
}

/// What the client's names of packages mean here. Fields that no Ray knows are left out, as Ray does.
Result<json::Object> RayJobs::with_own_packages(const std::string& workspace, const json::Object& runtime_env) {
  json::Object out;
  const auto rewritten = [&](const json::Value& value, const std::string& path) -> Result<json::Value> {
    if (!value.is_string() || !std::string_view(value.get_string()).starts_with(kScheme)) return value;
    auto address = own_address(workspace, value.get_string(), path);
    if (!address && address.error().code() == ErrorCode::not_found && address.error().path().empty()) {
      return fail(Error(ErrorCode::not_found, fmt::format("package {} was not uploaded", std::string_view(value.get_string()))).at(path));
    }
    if (!address) return fail(std::move(address).error());
    return json::Value(*address);
  };
  for (const auto& entry : runtime_env) {
    const std::string_view key = entry.key();
    if (!is_runtime_env_field(key)) continue;
    const std::string path = member("$.runtime_env", key);
    if (key == "working_dir") {
      HELIO_TRY(value, rewritten(entry.value(), path));
      out[key] = std::move(value);
    } else if (key == "py_modules" && entry.value().is_array()) {
      json::Array modules;
      for (std::size_t i = 0; i < entry.value().get_array().size(); ++i) {
        HELIO_TRY(value, rewritten(entry.value().get_array()[i], element(path, i)));
        modules.push_back(std::move(value));
      }
      out[key] = std::move(modules);
    } else {
      out[key] = entry.value();
    }
  }
  return out;
}

Result<std::string> RayJobs::submit(const Caller& caller, const RaySubmit& request) {
  RaySubmission submission;
  submission.workspace = request.workspace;
  submission.submission_id = request.submission_id ? *request.submission_id : new_id(rng_);
  HELIO_CHECK_OK(check_id(submission.submission_id));
  submission.entrypoint = request.entrypoint;
  submission.metadata = request.metadata;
  submission.runtime_env = request.runtime_env;
  submission.created = clock_.now();

  model::JobSpec spec;
  spec.workspace = request.workspace;
  spec.entrypoint.command = request.entrypoint;
  const model::EntrypointResources& resources = request.resources;
  if (resources.num_cpus > 0 || resources.num_gpus > 0 || resources.memory.n > 0 || !resources.resources.empty()) {
    spec.entrypoint.resources = resources;
  }
  if (request.runtime_env) {
    HELIO_TRY(runtime_env, with_own_packages(request.workspace, *request.runtime_env));
    for (const auto& entry : *request.runtime_env) {
      if (is_runtime_env_field(entry.key())) continue;
      submission.notes.push_back(fmt::format("runtime_env.{} is no field of Ray's and was left out", std::string_view(entry.key())));
    }
    if (!runtime_env.empty()) spec.runtime_env = std::move(runtime_env);
  }
  HELIO_CHECK_OK(apply_shape(request, spec));
  if (spec.name.empty()) spec.name = submission.submission_id;  // by which `helio` finds it too
  // In the same transaction: of two with one id exactly one makes a job.
  const auto also = [&](store::WriteTx& tx, const Job& job) -> Result<void> {
    submission.job = job.id;
    return tx.put(submission, event_of(caller, job.created, "ray.submitted", submission.submission_id, job.id));
  };
  if (auto job = jobs_.submit_with(caller, spec, also); !job) return fail(std::move(job).error());
  return submission.submission_id;
}

Result<std::vector<RayJob>> RayJobs::list(const std::string& workspace) {
  std::vector<RayJob> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    store::ListQuery query;
    query.workspace = workspace;
    HELIO_TRY(page, tx.list<RaySubmission>(query));
    for (RaySubmission& submission : page.items) {
      HELIO_TRY(job, tx.find<Job>(submission.job.value));
      if (!job) continue;
      HELIO_TRY(ran, ever_ran(tx, *job));
      out.push_back({std::move(submission), std::move(*job), ran});
    }
    return {};
  }));
  return out;
}

Result<RayJob> RayJobs::get(const std::string& workspace, const std::string& id) {
  std::optional<RayJob> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(submission, tx.find<RaySubmission>(workspace + "/" + id));
    if (!submission) return fail(ErrorCode::not_found, "Job {} does not exist", id);
    HELIO_TRY(job, tx.get<Job>(submission->job.value));
    HELIO_TRY(ran, ever_ran(tx, job));
    out.emplace(std::move(*submission), std::move(job), ran);
    return {};
  }));
  return std::move(*out);
}

Result<bool> RayJobs::stop(const Caller& caller, const RayJob& ray) {
  if (model::is_terminal(ray.job.state)) return false;
  HELIO_TRY(job, jobs_.stop(caller, ray.job.id, model::StopReason::user));
  return !model::is_terminal(job.state) || job.state == JobState::stopped;
}

Result<void> RayJobs::remove(const Caller& caller, const RayJob& ray) { return jobs_.remove(caller, ray.job.id); }

Result<bool> RayJobs::has_package(const std::string& workspace, const std::string& name) {
  auto package = store::get<RayPackage>(store_, workspace + "/" + name);
  if (!package && package.error().code() == ErrorCode::not_found) return false;
  if (!package) return fail(std::move(package).error());
  return packages_.exists(package->sha256.value);
}

Result<void> RayJobs::put_package(const Caller& caller, const std::string& workspace, const std::string& name, const std::string& file) {
  HELIO_TRY(digest, packages_.add(file));
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(former, tx.find<RayPackage>(workspace + "/" + name));
    RayPackage package = former.value_or(RayPackage{});
    package.workspace = workspace;
    package.name = name;
    package.sha256 = PackageId(digest);
    package.stored = clock_.now();
    return tx.put(package, event_of(caller, package.stored, "ray.package", name));
  });
}

}  // namespace helio::service
