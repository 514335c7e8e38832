#include "service/dashboards.h"

#include "model/kinds.h"
#include "model/ray_version.h"
#include "service/scope.h"

#include <algorithm>
#include <charconv>

namespace helio::service {
namespace {

using model::ClusterState;

constexpr std::size_t kMostKept = 1024;

/// "http://127.0.0.1:12001" into its parts.
bool take_address(std::string_view url, Dashboard& out) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  const std::size_t colon = url.rfind(':');
  if (colon == std::string_view::npos) return false;
  const auto parsed = std::from_chars(url.data() + colon + 1, url.data() + url.size(), out.port);
  out.address = url.substr(0, colon);
  return parsed.ec == std::errc{} && parsed.ptr == url.data() + url.size();
}

}  // namespace

bool Dashboards::is_current(const Entry& entry) const {
  return entry.revision >= std::max(store_.changed(model::KindOf<model::Cluster>::name), store_.changed(model::KindOf<model::Job>::name));
}

Result<Dashboard> Dashboards::read(store::ReadTx& tx, const JobId& id) {
  HELIO_TRY(job, tx.find<model::Job>(id.value));
  if (!job) return fail(no_job(id));
  if (job->guest_of) return read(tx, *job->guest_of);
  Dashboard out;
  out.job = id;
  out.owner = job->owner;
  out.workspace = job->spec.workspace;
  out.ended = model::is_terminal(job->state);
  if (!job->current_attempt) return out;
  HELIO_TRY(attempt, tx.find<model::Attempt>(job->current_attempt->value));
  if (!attempt) return out;
  HELIO_TRY(cluster, tx.find<model::Cluster>(attempt->cluster.value));
  if (!cluster) return out;
  if (cluster->state == ClusterState::requested || cluster->state == ClusterState::starting) out.state = Dashboard::State::starting;
  const bool up =
      cluster->state == ClusterState::ready || cluster->state == ClusterState::degraded || cluster->state == ClusterState::retained;
  if (!up || !take_address(cluster->dashboard, out)) return out;
  out.state = Dashboard::State::live;
  if (!model::ray_has_tokens(attempt->ray_version)) return out;
  HELIO_TRY(sealed, tx.get_secret("attempt/" + attempt->id.value + "/ray_token"));
  if (!sealed) return fail(ErrorCode::internal, "attempt {} has no token of its cluster", attempt->id.value);
  HELIO_TRY(token, sealer_.open(*sealed));
  out.token = std::move(token);
  return out;
}

Result<std::shared_ptr<const Dashboard>> Dashboards::get(const JobId& job) {
  if (auto kept = known(job)) return kept;
  Entry entry;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(revision, tx.revision());
    HELIO_TRY(dashboard, read(tx, job));
    entry = {std::make_shared<const Dashboard>(std::move(dashboard)), revision};
    return {};
  }));
  const std::scoped_lock lock(mutex_);
  if (kept_.size() >= kMostKept) kept_.clear();
  kept_[job] = entry;
  return entry.dashboard;
}

std::shared_ptr<const Dashboard> Dashboards::known(const JobId& job) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;
  const auto found = kept_.find(job);
  return found != kept_.end() && is_current(found->second) ? found->second.dashboard : nullptr;
}

}  // namespace helio::service
