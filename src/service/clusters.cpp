// Long-lived clusters by their names. A cluster is a job without an entrypoint; here is what the name adds.

#include "service/fields.h"
#include "service/jobs.h"

namespace helio::service {

using model::ClusterName;
using model::Job;

namespace {

std::string name_key(const std::string& workspace, const std::string& name) { return workspace + "/" + name; }

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
