// Long-lived clusters by their names. A cluster is a job without an entrypoint; here is what the name adds.

#include "model/ray_version.h"
#include "service/fields.h"
#include "service/jobs.h"
#include "service/scope.h"

#include <algorithm>
#include <utility>

namespace helio::service {

using model::ClusterName;
using model::Job;

namespace {

std::string name_key(const std::string& workspace, const std::string& name) { return workspace + "/" + name; }

/// Those of a group that are there and stay.
Result<std::int32_t> workers_of(store::ReadTx& tx, const Job& job, const std::string& group) {
  if (!job.current_attempt) return 0;
  HELIO_TRY(attempt, tx.find<model::Attempt>(job.current_attempt->value));
  if (!attempt) return 0;
  store::ListQuery of_cluster;
  of_cluster.parent = attempt->cluster.value;
  HELIO_TRY(nodes, tx.list<model::Node>(of_cluster));
  return static_cast<std::int32_t>(std::ranges::count_if(
      nodes.items, [&](const model::Node& node) { return model::is_staying(node) && node.placement.group == group; }));
}

store::Event event_of(const Caller& caller, const JobId& job, Timestamp now, std::string type, std::string message) {
  store::Event event;
  event.at = now;
  event.actor = caller.principal;
  event.type = std::move(type);
  event.message = std::move(message);
  event.job = job.value;
  return event;
}

}  // namespace

Result<void> take_cluster_name(store::WriteTx& tx, const Job& job, store::Event event) {
  HELIO_TRY(found, tx.find<ClusterName>(name_key(job.spec.workspace, job.spec.name)));
  ClusterName name = found.value_or(ClusterName{});
  if (found) {
    HELIO_TRY(holder, tx.find<Job>(name.job.value));
    if (holder && !model::is_terminal(holder->state)) {
      return fail(Error(ErrorCode::conflict, fmt::format("there is a cluster '{}' already ({}, {}); take another name, or delete it first",
                                                         job.spec.name, holder->id.value, json::enum_name(holder->state)))
                      .at("$.name")
                      .with("job", holder->id.value));
    }
  }
  name.workspace = job.spec.workspace;
  name.name = job.spec.name;
  name.job = job.id;
  return tx.put(name, std::move(event));
}

Result<std::optional<Job>> cluster_of(store::ReadTx& tx, const model::JobSpec& spec) {
  if (!spec.cluster) return std::optional<Job>{};
  HELIO_TRY(name, tx.find<ClusterName>(name_key(spec.workspace, *spec.cluster)));
  std::optional<Job> job;
  if (name) {
    HELIO_TRY(found, tx.find<Job>(name->job.value));
    job = std::move(found);
  }
  if (!job) {
    return fail(Error(ErrorCode::not_found, fmt::format("no cluster '{}' in workspace '{}'; helio cluster list shows those that are there",
                                                        *spec.cluster, spec.workspace))
                    .at("$.cluster")
                    .with("cluster", *spec.cluster));
  }
  if (model::is_terminal(job->state) || job->stop != model::StopReason::none) {
    return fail(Error(ErrorCode::precondition_failed,
                      fmt::format("the cluster '{}' {} ({}); make it again with helio cluster create", *spec.cluster,
                                  model::is_terminal(job->state) ? "has ended" : "is being shut down", json::enum_name(job->state)))
                    .at("$.cluster")
                    .with("cluster", *spec.cluster));
  }
  return job;
}

Result<std::optional<Job>> Jobs::cluster_for(const model::JobSpec& spec) {
  std::optional<Job> out;
  if (!spec.cluster) return out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, cluster_of(tx, spec));
    out = std::move(found);
    return {};
  }));
  return out;
}

Result<Job> Jobs::scale(const Caller& caller, const JobId& id, const Scale& scale) {
  HELIO_TRY(catalog, catalog_.get());
  Job job;
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.find<Job>(id.value));
    if (!found) return fail(no_job(id));
    job = std::move(*found);
    if (job.spec.type != model::JobType::cluster) return fail(ErrorCode::precondition_failed, "{} is no long-lived cluster", id.value);
    if (model::is_terminal(job.state) || job.stop != model::StopReason::none) {
      return fail(ErrorCode::precondition_failed, "the cluster '{}' {}", job.spec.name,
                  model::is_terminal(job.state) ? "has ended" : "is being shut down");
    }
    std::vector<std::string> groups;
    for (const model::WorkerGroup& group : job.spec.workers) groups.push_back(group.name);
    if (!scale.group && groups.size() != 1) return wrong("$.group", "expected one of: {}", listed(groups));
    const auto group =
        std::ranges::find(job.spec.workers, scale.group.value_or(groups.empty() ? "" : groups[0]), &model::WorkerGroup::name);
    if (group == job.spec.workers.end()) return wrong("$.group", "no group '{}'; there are: {}", *scale.group, listed(groups));
    if (scale.count < 1) return wrong("$.count", "expected 1 or more, got {}; a cluster that is not needed is deleted", scale.count);
    const std::int32_t before = std::exchange(group->count, scale.count);
    HELIO_TRY(staying, workers_of(tx, job, group->name));
    if (scale.count < staying &&
        !model::ray_can_drain(catalog->images.contains(job.spec.image) ? catalog->images.at(job.spec.image).ray_version : "")) {
      return fail(Error(ErrorCode::precondition_failed,
                        fmt::format("nodes can leave a cluster of Ray 2.30 or later without losing their work; image '{}' has an older one",
                                    job.spec.image))
                      .at("$.count"));
    }
    const auto members = model::members_of(job.spec, catalog->flavors);
    if (!members) return fail(Error(members.error().code(), members.error().message()).at("$.count"));
    if (const auto misfit = sched::never_fits(catalog->hosts, *members); misfit && scale.count > before) {
      return fail(Error(ErrorCode::resource_exhausted, "can never be had here: " + misfit->message)
                      .at("$.count")
                      .with("largest", std::to_string(misfit->largest_count)));
    }
    return tx.put(job, event_of(caller, id, clock_.now(), "cluster.scaled",
                                fmt::format("{} asked for {} {} instead of {}", caller.principal, scale.count, group->name, before)));
  }));
  return job;
}

Result<JobId> Jobs::cluster(const model::Scope& scope, const std::string& workspace, const std::string& name) {
  auto found = store::get<ClusterName>(store_, name_key(workspace, name));
  if (!found && found.error().code() != ErrorCode::not_found) return fail(std::move(found).error());
  if (found && scope.holds(workspace)) return found->job;
  return fail(Error(ErrorCode::not_found, fmt::format("no cluster '{}'", name)).with("cluster", name));
}

Result<std::vector<Job>> Jobs::clusters(const model::Scope& scope, const std::string& workspace, bool ended) {
  std::vector<Job> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    store::ListQuery query;
    query.workspace = workspace;
    HELIO_TRY(names, tx.list<ClusterName>(query));
    for (const ClusterName& name : names.items) {
      if (!scope.holds(name.workspace)) continue;
      HELIO_TRY(job, tx.find<Job>(name.job.value));
      if (job && (ended || !model::is_terminal(job->state))) out.push_back(std::move(*job));
    }
    return {};
  }));
  return out;
}

}  // namespace helio::service
