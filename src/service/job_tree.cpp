// What hangs on a job: its attempts, clusters and nodes; and removing all of it.

#include "service/job_files.h"
#include "service/jobs.h"
#include "service/scope.h"

namespace helio::service {
namespace {

/// Every row of a job below the job itself.
struct Tree {
  std::vector<model::Attempt> attempts;
  std::vector<model::Cluster> clusters;
  std::vector<model::Node> nodes;
};

template <class T>
Result<std::vector<T>> children(store::ReadTx& tx, const std::string& parent) {
  store::ListQuery query;
  query.parent = parent;
  HELIO_TRY(page, tx.list<T>(query));
  return std::move(page.items);
}

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

Result<Tree> tree_of(store::ReadTx& tx, const JobId& job) {
  Tree tree;
  HELIO_TRY(attempts, children<model::Attempt>(tx, job.value));
  tree.attempts = std::move(attempts);
  for (const model::Attempt& attempt : tree.attempts) {
    HELIO_TRY(clusters, children<model::Cluster>(tx, attempt.id.value));
    append(tree.clusters, clusters);
  }
  for (const model::Cluster& cluster : tree.clusters) {
    HELIO_TRY(nodes, children<model::Node>(tx, cluster.id.value));
    append(tree.nodes, nodes);
  }
  return tree;
}

/// The tree, when nothing in it lives.
Result<Tree> dead_tree(store::ReadTx& tx, const JobId& id) {
  HELIO_TRY(job, tx.find<model::Job>(id.value));
  if (!job) return fail(no_job(id));
  if (!model::is_terminal(job->state)) {
    return fail(Error(ErrorCode::precondition_failed,
                      job->stop == model::StopReason::none
                          ? fmt::format("job '{}' is {}; stop it first: helio stop {}", id.value, json::enum_name(job->state), id.value)
                          : fmt::format("job '{}' is {}; wait for its end: helio wait {}", id.value, json::enum_name(job->state), id.value))
                    .with("state", std::string(json::enum_name(job->state))));
  }
  HELIO_TRY(tree, tree_of(tx, id));
  for (const model::Cluster& cluster : tree.clusters) {
    if (cluster.state == model::ClusterState::retained && cluster.retained_until) {
      return fail(ErrorCode::precondition_failed, "nodes of job '{}' are kept for inspection until {}", id.value,
                  format_time(*cluster.retained_until));
    }
  }
  for (const model::Node& node : tree.nodes) {
    if (node.state != model::NodeState::gone) {
      return fail(ErrorCode::precondition_failed, "node '{}' of the job is still {}; try again when it is gone", node.id.value,
                  json::enum_name(node.state));
    }
  }
  return std::move(tree);
}

}  // namespace

Result<void> Jobs::remove(const Caller& caller, const JobId& id) {
  Tree tree;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, dead_tree(tx, id));
    tree = std::move(found);
    return {};
  }));
  if (logs_ != nullptr) {
    for (const model::Attempt& attempt : tree.attempts) HELIO_CHECK_OK(logs_->remove(attempt.id));
  }
  HELIO_CHECK_OK(remove_job_files(home_, id));
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(now_tree, dead_tree(tx, id));
    const auto event = [&](std::string_view what) {
      store::Event out;
      out.at = clock_.now();
      out.actor = caller.principal;
      out.type = std::string(what) + ".removed";
      out.job = id.value;
      return out;
    };
    for (const model::Node& node : now_tree.nodes) HELIO_CHECK_OK(tx.remove<model::Node>(node.id.value, event("node")));
    for (const model::Cluster& cluster : now_tree.clusters) HELIO_CHECK_OK(tx.remove<model::Cluster>(cluster.id.value, event("cluster")));
    for (const model::Attempt& attempt : now_tree.attempts) HELIO_CHECK_OK(tx.remove<model::Attempt>(attempt.id.value, event("attempt")));
    HELIO_TRY(submissions, children<model::RaySubmission>(tx, id.value));
    for (const model::RaySubmission& one : submissions) {
      HELIO_CHECK_OK(tx.remove<model::RaySubmission>(model::KindOf<model::RaySubmission>::id(one), event("ray_submission")));
    }
    HELIO_TRY(names, children<model::ClusterName>(tx, id.value));
    for (const model::ClusterName& name : names) {
      HELIO_CHECK_OK(tx.remove<model::ClusterName>(model::KindOf<model::ClusterName>::id(name), event("cluster_name")));
    }
    HELIO_CHECK_OK(tx.remove_secrets("job/" + id.value + "/"));
    store::Event last = event("job");
    last.message = "removed with its attempts, logs and files";
    return tx.remove<model::Job>(id.value, std::move(last));
  });
}

Result<std::vector<model::Attempt>> Jobs::attempts(const JobId& id) {
  std::vector<model::Attempt> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(job, tx.get<model::Job>(id.value));
    HELIO_TRY(found, children<model::Attempt>(tx, job.id.value));
    out = std::move(found);
    return {};
  }));
  return out;
}

Result<std::vector<model::Node>> Jobs::nodes(const JobId& id) {
  std::vector<model::Node> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(job, tx.get<model::Job>(id.value));
    HELIO_TRY(tree, tree_of(tx, job.id));
    out = std::move(tree.nodes);
    return {};
  }));
  return out;
}

}  // namespace helio::service
