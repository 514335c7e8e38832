#include "control/retention.h"

#include "base/log.h"
#include "model/kinds.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::control {
namespace {

constexpr Bytes kLogTotal = 20_GiB;
constexpr int kPage = 200;
constexpr int kLeftovers = 50;
constexpr std::string_view kRemoved = "its logs were removed: ";

store::ListQuery ended_jobs() {
  using enum model::JobState;
  store::ListQuery query;
  for (const auto state : {succeeded, failed, stopped}) query.states.emplace_back(json::enum_name(state));
  query.limit = kPage;
  return query;
}

bool logs_removed(const model::Job& job) {
  return std::ranges::any_of(job.warnings, [](const std::string& warning) { return warning.starts_with(kRemoved); });
}

AttemptId attempt_of(const model::Job& job, std::int32_t number) { return AttemptId(fmt::format("{}-{}", job.id.value, number)); }

}  // namespace

Result<void> Retention::seal(const AttemptId& attempt) { return logs_.seal(attempt); }

Result<void> Retention::seal_leftovers() {
  using enum model::AttemptState;
  store::ListQuery query;
  for (const auto state : {succeeded, failed, stopped, preempted, suspended, lost}) query.states.emplace_back(json::enum_name(state));
  query.newest_first = true;
  query.limit = kLeftovers;
  HELIO_TRY(page, store::list<model::Attempt>(store_, query));
  for (const model::Attempt& attempt : page.items) {
    HELIO_TRY(cluster, store::get<model::Cluster>(store_, attempt.cluster.value));
    if (cluster.state == model::ClusterState::gone) HELIO_CHECK_OK(logs_.seal(attempt.id));
  }
  return {};
}

Result<void> Retention::each_ended(const std::function<Result<bool>(const model::Job&)>& visit) {
  store::ListQuery query = ended_jobs();
  do {
    HELIO_TRY(page, store::list<model::Job>(store_, query));
    for (const model::Job& job : page.items) {
      if (logs_removed(job)) continue;
      HELIO_TRY(stop, visit(job));
      if (stop) return {};
    }
    query.cursor = page.next;
  } while (!query.cursor.empty());
  return {};
}

Result<void> Retention::remove_logs(const store::Lease& lease, const model::Job& job, std::string why, Timestamp now) {
  for (std::int32_t number = 1; number <= job.attempts; ++number) HELIO_CHECK_OK(logs_.remove(attempt_of(job, number)));
  return store_.write(lease, [&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.find<model::Job>(job.id.value));
    if (!found) return {};
    found->warnings.push_back(std::string(kRemoved) + why);
    store::Event event;
    event.at = now;
    event.actor = "control";
    event.type = "job.logs_removed";
    event.message = why;
    event.job = job.id.value;
    return tx.put(*found, std::move(event));
  });
}

Result<void> Retention::sweep(const store::Lease& lease, Timestamp now, const std::function<bool(const JobId&)>& in_use) {
  const Duration age = settings_.keep.logs.d;
  HELIO_CHECK_OK(each_ended([&](const model::Job& job) -> Result<bool> {
    // In order of creation: whatever follows ended later than this one was made.
    if (now - job.created < age) return true;
    if (now - job.finished.value_or(job.state_since) < age || in_use(job.id)) return false;
    HELIO_CHECK_OK(remove_logs(lease, job, fmt::format("older than {}", format_duration(age)), now));
    return false;
  }));

  const Bytes budget = settings_.keep.log_total.n > 0 ? settings_.keep.log_total : kLogTotal;
  HELIO_TRY(total, logs_.total_bytes());
  if (total <= budget.n) return {};
  std::int64_t left = total;
  return each_ended([&](const model::Job& job) -> Result<bool> {
    if (in_use(job.id)) return false;
    std::int64_t held = 0;
    for (std::int32_t number = 1; number <= job.attempts; ++number) {
      HELIO_TRY(streams, logs_.list(attempt_of(job, number)));
      for (const store::StreamMeta& stream : streams) held += stream.stored;
    }
    if (held == 0) return false;
    HELIO_CHECK_OK(remove_logs(lease, job, fmt::format("all logs together were over {}", format_bytes(budget)), now));
    left -= held;
    return left <= budget.n;
  });
}

Result<void> Retention::compact(const store::Lease& lease, Timestamp now) {
  std::int64_t removed = 0;
  HELIO_CHECK_OK(store_.write(lease, [&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(count, tx.compact(now - settings_.keep.events.d));
    removed = count;
    return {};
  }));
  if (removed > 0) log::info("forgot {} old events and keys", removed);
  return {};
}

}  // namespace helio::control
