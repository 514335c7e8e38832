#include "service/jobs.h"

#include "base/log.h"
#include "service/fields.h"
#include "service/job_files.h"
#include "service/live.h"
#include "service/packages.h"
#include "service/scope.h"

#include <algorithm>

namespace helio::service {
namespace {

using model::Job;

constexpr std::string_view kMask = "***";

std::string secret_prefix(const JobId& job) { return "job/" + job.value + "/"; }
std::string secret_key(const JobId& job, const std::string& variable) { return secret_prefix(job) + "env/" + variable; }

store::Event event_of(const Caller& caller, const JobId& job, Timestamp now, std::string type, std::string message) {
  store::Event event;
  event.at = now;
  event.actor = caller.principal;
  event.type = std::move(type);
  event.message = std::move(message);
  event.job = job.value;
  return event;
}

Result<Job> find_job(store::ReadTx& tx, const JobId& id) {
  HELIO_TRY(found, tx.find<Job>(id.value));
  if (!found) return fail(no_job(id));
  return std::move(*found);
}

/// The first reply when this create was made before; `document`, if given, gets its text.
Result<std::optional<Job>> earlier_reply(store::ReadTx& tx, const Caller& caller, const Idempotency& idempotency, std::string* document) {
  if (idempotency.key.empty()) return std::optional<Job>{};
  HELIO_TRY(record, tx.get_idempotency(caller.principal, idempotency.route, idempotency.key));
  if (!record) return std::optional<Job>{};
  if (record->body_hash != idempotency.body_hash) {
    return fail(Error(ErrorCode::conflict, fmt::format("the idempotency key '{}' was used with another body", idempotency.key))
                    .with("key", idempotency.key));
  }
  HELIO_TRY(job, json::parse_as<Job>(record->response, json::Unknown::ignore));
  if (document != nullptr) *document = std::move(record->response);
  return std::optional<Job>(std::move(job));
}

store::IdempotencyRecord record_of(const Caller& caller, const Idempotency& idempotency, std::string document) {
  return {caller.principal, idempotency.route, idempotency.key, idempotency.body_hash, 201, std::move(document)};
}

void mask(model::JobSpec& spec) {
  for (model::EnvVar& variable : spec.env) {
    if (variable.secret) variable.value = kMask;
  }
}

}  // namespace

Jobs::Jobs(store::Store& store, const Sealer& sealer, const Clock& clock, Rng& rng, const model::Settings& settings,
           const model::Home& home, store::LogStore* logs)
    : store_(store),
      sealer_(sealer),
      clock_(clock),
      rng_(rng),
      settings_(settings),
      home_(home),
      logs_(logs),
      catalog_(store, settings, [this](std::string_view digest) { return Packages(home_, settings_).exists(digest); }) {}

void Jobs::seal_secrets(model::JobSpec& spec, const JobId& job, std::vector<std::pair<std::string, std::string>>& sealed) const {
  for (model::EnvVar& variable : spec.env) {
    if (!variable.secret) continue;
    sealed.emplace_back(secret_key(job, variable.name), sealer_.seal(variable.value));
    variable.value = kMask;
  }
}

Result<Job> Jobs::submit(const Caller& caller, const model::JobSpec& spec, const Idempotency& idempotency, std::string* document) {
  return create(caller, spec, idempotency, std::nullopt, document);
}

Result<Job> Jobs::submit_with(const Caller& caller, const model::JobSpec& spec, const Also& also) {
  return create(caller, spec, {}, std::nullopt, nullptr, also);
}

Result<Job> Jobs::create(const Caller& caller, const model::JobSpec& spec, const Idempotency& idempotency,
                         const std::optional<JobId>& rerun_of, std::string* document, const Also& also) {
  HELIO_CHECK_OK(check_workspace(caller.scope, spec.workspace));
  std::optional<Job> earlier;
  if (!idempotency.key.empty()) {
    // Before anything is checked: what was accepted once is answered again, also when the pool has changed since.
    HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
      HELIO_TRY(reply, earlier_reply(tx, caller, idempotency, document));
      earlier = std::move(reply);
      return {};
    }));
    if (earlier) return std::move(*earlier);
  }
  HELIO_TRY(catalog, catalog_.get());
  HELIO_TRY(cluster, cluster_for(spec));
  HELIO_TRY(resolved, resolve(spec, *catalog, cluster ? &cluster->spec : nullptr));

  Job job;
  job.id = JobId("j-" + random_base32(rng_, 16));
  job.owner = caller.principal;
  job.spec = std::move(resolved.spec);
  job.warnings = std::move(resolved.warnings);
  job.reason = cluster ? fmt::format("waiting for the cluster '{}'", cluster->spec.name) : "waiting for its place in the pool";
  job.created = job.state_since = clock_.now();
  job.queued_since = job.created;
  job.rerun_of = rerun_of;
  if (cluster) job.guest_of = cluster->id;
  std::vector<std::pair<std::string, std::string>> sealed;
  seal_secrets(job.spec, job.id, sealed);

  HELIO_CHECK_OK(make_job_files(home_, job.id, job.spec.entrypoint));
  const std::string message =
      rerun_of ? fmt::format("'{}', again after {}", job.spec.name, rerun_of->value) : fmt::format("'{}'", job.spec.name);
  const auto written = store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(reply, earlier_reply(tx, caller, idempotency, document));  // of one that came at the same time
    earlier = std::move(reply);
    if (earlier) return {};
    std::string text;
    HELIO_CHECK_OK(tx.put(job, event_of(caller, job.id, job.created, "job.submitted", message), &text));
    if (document != nullptr) *document = text;
    for (const auto& [key, bytes] : sealed) HELIO_CHECK_OK(tx.put_secret(key, bytes));
    if (job.spec.type == model::JobType::cluster) {
      HELIO_CHECK_OK(take_cluster_name(tx, job, event_of(caller, job.id, job.created, "cluster.named", job.spec.name)));
    }
    if (also) HELIO_CHECK_OK(also(tx, job));
    if (idempotency.key.empty()) return {};
    return tx.put_idempotency(record_of(caller, idempotency, std::move(text)), job.created);
  });
  if (written && !earlier) return job;
  if (const auto removed = remove_job_files(home_, job.id); !removed) log::warn("after a refused submit: {}", removed.error().text());
  if (!written) return std::unexpected(written.error());
  return std::move(*earlier);
}

namespace {

Preview preview_guest(Resolved resolved, const Job& cluster) {
  Preview out;
  out.starts_now = cluster.state == model::JobState::running;
  out.would = out.starts_now ? fmt::format("would start now in the cluster '{}'", cluster.spec.name)
                             : fmt::format("would wait until the cluster '{}' is ready; it is {}: {}", cluster.spec.name,
                                           json::enum_name(cluster.state), cluster.reason);
  out.spec = std::move(resolved.spec);
  mask(out.spec);
  out.warnings = std::move(resolved.warnings);
  return out;
}

}  // namespace

Result<Preview> Jobs::preview(const Caller& caller, const model::JobSpec& spec) {
  HELIO_CHECK_OK(check_workspace(caller.scope, spec.workspace));
  HELIO_TRY(catalog, catalog_.get());
  Catalog without_packages = *catalog;
  without_packages.has_package = nullptr;  // what would be uploaded with the job is not here yet
  HELIO_TRY(cluster, cluster_for(spec));
  HELIO_TRY(resolved, resolve(spec, without_packages, cluster ? &cluster->spec : nullptr));
  if (cluster) return preview_guest(std::move(resolved), *cluster);
  sched::State state;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(live, load_state(tx, catalog->flavors));
    state = std::move(live);
    return {};
  }));

  Preview out;
  const Timestamp now = clock_.now();
  const JobId id("this job");  // no stored id looks like it
  state.queue.push_back({id, resolved.spec.priority, now, std::nullopt, resolved.members});
  for (const sched::Member& member : resolved.members) {
    model::Placement place;
    place.role = member.role;
    place.index = member.index;
    place.group = member.group;
    place.flavor = member.flavor;
    place.resources = member.resources;
    out.total += member.resources;
    out.gang.push_back(std::move(place));
  }
  sched::Plan plan = sched::plan_admissions(state, now);
  for (sched::Admission& admission : plan.admit) {
    if (admission.job != id) continue;
    out.starts_now = true;
    out.gang = std::move(admission.placement);
    std::vector<std::string> hosts;
    for (const model::Placement& place : out.gang) {
      if (std::ranges::find(hosts, place.host.value) == hosts.end()) hosts.push_back(place.host.value);
    }
    out.would = "would start now on " + listed(hosts);
  }
  for (const sched::Refusal& refusal : plan.wait) {
    if (refusal.job != id) continue;
    // The one that a job stands behind may be of a workspace that the caller does not know of.
    const std::string why = refusal.constraint == "order" && !caller.scope.is_all() ? "others are ahead" : refusal.message;
    out.would = fmt::format("would wait at place {} of the queue: {}", refusal.position, why);
  }
  out.spec = std::move(resolved.spec);
  mask(out.spec);
  out.warnings = std::move(resolved.warnings);
  return out;
}

Result<void> Jobs::check_known(const model::Scope& scope, const JobId& id) {
  if (scope.is_all()) return {};
  bool known = false;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, knows(tx, scope, id));
    known = found;
    return {};
  }));
  return known ? Result<void>() : fail(no_job(id));
}

Result<Job> Jobs::get(const JobId& id) {
  std::optional<Job> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(job, find_job(tx, id));
    out = std::move(job);
    return {};
  }));
  return std::move(*out);
}

Result<std::string> Jobs::get_text(const JobId& id) {
  std::string out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(row, tx.get_row(model::KindOf<Job>::name, id.value));
    if (!row) return fail(no_job(id));
    out = store::shown(row->revision, row->doc);
    return {};
  }));
  return out;
}

Result<store::Page<Job>> Jobs::list(const store::ListQuery& query) { return store::list<Job>(store_, query); }

Result<Job> Jobs::stop(const Caller& caller, const JobId& id, model::StopReason reason) {
  const auto settled = [](const Job& job) { return model::is_terminal(job.state) || job.stop != model::StopReason::none; };
  HELIO_TRY(before, get(id));
  if (model::is_terminal(before.state)) HELIO_CHECK_OK(release_retained(caller, before));
  if (settled(before)) return std::move(before);
  Job job;
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(found, find_job(tx, id));
    job = std::move(found);
    if (settled(job)) return {};
    job.stop = reason;
    job.stop_asked = clock_.now();
    job.reason = fmt::format("{} asked to stop it", caller.principal);
    return tx.put(job, event_of(caller, id, *job.stop_asked, "job.stop_asked", job.reason));
  }));
  return job;
}

Result<void> Jobs::release_retained(const Caller& caller, const Job& job) {
  if (!job.current_attempt) return {};
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(attempt, tx.find<model::Attempt>(job.current_attempt->value));
    if (!attempt) return {};
    HELIO_TRY(cluster, tx.find<model::Cluster>(attempt->cluster.value));
    const Timestamp now = clock_.now();
    if (!cluster || cluster->state != model::ClusterState::retained || cluster->retained_until <= now) return {};
    cluster->retained_until = now;
    return tx.put(*cluster,
                  event_of(caller, job.id, now, "cluster.release_asked", fmt::format("{} gave its nodes back", caller.principal)));
  });
}

Result<model::JobSpec> Jobs::spec_with_secrets(const JobId& id) {
  model::JobSpec spec;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(job, find_job(tx, id));
    spec = std::move(job.spec);
    for (model::EnvVar& variable : spec.env) {
      if (!variable.secret) continue;
      HELIO_TRY(sealed, tx.get_secret(secret_key(id, variable.name)));
      if (!sealed) return fail(ErrorCode::internal, "the secret {} of job '{}' is missing", variable.name, id.value);
      HELIO_TRY(clear, sealer_.open(*sealed));
      variable.value = std::move(clear);
    }
    return {};
  }));
  return spec;
}

Result<Job> Jobs::rerun(const Caller& caller, const JobId& id, const Idempotency& idempotency, std::string* document) {
  HELIO_TRY(spec, spec_with_secrets(id));
  if (spec.cluster) spec.image = model::JobSpec{}.image;  // that of the cluster which has the name now
  return create(caller, spec, idempotency, id, document);
}

}  // namespace helio::service
