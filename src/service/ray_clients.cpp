#include "service/ray_clients.h"

#include "model/kinds.h"
#include "model/ray_version.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::service {
namespace {

using model::ClusterState;

constexpr std::int32_t kClientPort = 2;  ///< of the head's block

/// Its Ray runs; what becomes of the job does not matter here.
bool is_up(ClusterState state) {
  return state == ClusterState::ready || state == ClusterState::degraded || state == ClusterState::retained;
}

Error not_up(const model::Job& job) {
  const std::string_view state = json::enum_name(job.state);
  if (model::is_terminal(job.state)) {
    return {ErrorCode::precondition_failed, fmt::format("{} has {}: its cluster is gone", job.id.value, state)};
  }
  return {ErrorCode::precondition_failed,
          fmt::format("the cluster of {} is not up: the job is {} ({}); `helio explain {}` says more, and when it runs, try again",
                      job.id.value, state, job.reason, job.id.value)};
}

}  // namespace

Result<RayClientPlace> RayClients::read(store::ReadTx& tx, const JobId& id) {
  HELIO_TRY(job, tx.find<model::Job>(id.value));
  if (!job) return fail(Error(ErrorCode::not_found, fmt::format("no job '{}'", id.value)).with("job", id.value));
  if (job->guest_of) {
    return fail(ErrorCode::precondition_failed, "{} runs in the cluster '{}': connect to that", id.value, job->spec.cluster.value_or(""));
  }
  if (!job->current_attempt) return fail(not_up(*job));
  HELIO_TRY(attempt, tx.find<model::Attempt>(job->current_attempt->value));
  if (!attempt) return fail(not_up(*job));
  HELIO_TRY(cluster, tx.find<model::Cluster>(attempt->cluster.value));
  if (!cluster || !is_up(cluster->state) || attempt->placement.empty()) return fail(not_up(*job));
  const auto head = std::ranges::find(attempt->placement, model::Role::head, &model::Placement::role);
  if (head == attempt->placement.end()) return fail(not_up(*job));
  HELIO_TRY(node, tx.find<model::Node>(head->node.value));
  if (!node || node->state == model::NodeState::gone) return fail(not_up(*job));
  RayClientPlace out;
  out.head = node->id;
  out.address = node->address;
  out.port = static_cast<std::uint16_t>(node->port_base + kClientPort);
  out.ray_version = attempt->ray_version;
  HELIO_TRY(image, tx.find<model::Image>(attempt->image));
  // One that was registered anew may be another by now.
  if (image && image->ray_version == attempt->ray_version) {
    out.python_version = image->python_version;
    out.python = image->prefix + "/bin/python";
  }
  if (!model::ray_has_tokens(attempt->ray_version)) return out;
  HELIO_TRY(sealed, tx.get_secret("attempt/" + attempt->id.value + "/ray_token"));
  if (!sealed) return fail(ErrorCode::internal, "attempt {} has no token of its cluster", attempt->id.value);
  HELIO_TRY(token, sealer_.open(*sealed));
  out.token = std::move(token);
  return out;
}

Result<RayClientPlace> RayClients::find(const JobId& job) {
  RayClientPlace out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(place, read(tx, job));
    out = std::move(place);
    return {};
  }));
  return out;
}

}  // namespace helio::service
