#include "ray/activity_client.h"

#include <algorithm>

namespace helio::ray {

namespace {

constexpr Duration kDeadline = 5s;
/// Dead actors stay in the table for long. Supervisors of jobs are actors too; their jobs have been counted before.
constexpr std::string_view kLivingActors = "/api/v0/actors?limit=1&filter_keys=state&filter_predicates=%21%3D&filter_values=DEAD";

}  // namespace

Result<std::unique_ptr<ActivityClient>> ActivityClient::create(const Endpoint& dashboard) {
  HELIO_TRY(http, open_client(dashboard));
  return std::make_unique<ActivityClient>(std::move(http));
}

Result<Activity> parse_jobs_activity(std::string_view body) {
  HELIO_TRY(value, json::parse(body));
  if (!value.is_array()) return fail(ErrorCode::unavailable, "the cluster's job table cannot be read");
  Activity out;
  for (const json::Value& entry : value.get_array()) {
    const json::Object* job = entry.if_object();
    if (job == nullptr) continue;
    const json::Value* status = job->if_contains("status");
    const std::string_view text = status != nullptr && status->is_string() ? std::string_view(status->get_string()) : std::string_view();
    if (text == "RUNNING" || text == "PENDING") out.busy = true;
    const json::Value* end = job->if_contains("end_time");
    if (end == nullptr || !end->is_int64() || end->get_int64() <= 0) continue;
    constexpr std::int64_t kMicroseconds = 1000;
    out.last_end = std::max(out.last_end.value_or(Timestamp{0}), Timestamp{end->get_int64() * kMicroseconds});
  }
  return out;
}

Result<bool> parse_any_actor(std::string_view body) {
  HELIO_TRY(value, json::parse(body));
  const auto member = [](const json::Value* from, std::string_view key) -> const json::Value* {
    return from != nullptr && from->is_object() ? from->get_object().if_contains(key) : nullptr;
  };
  const json::Value* list = member(member(member(&value, "data"), "result"), "result");
  if (list == nullptr || !list->is_array()) return fail(ErrorCode::unavailable, "the cluster's actor table cannot be read");
  return !list->get_array().empty();
}

Result<Activity> ActivityClient::look() {
  HELIO_TRY(jobs, http_->send({.target = "/api/jobs/", .deadline = kDeadline}));
  if (jobs.status != 200) return fail(ErrorCode::unavailable, "the job table answers {}", jobs.status);
  HELIO_TRY(out, parse_jobs_activity(jobs.body));
  if (out.busy) return out;
  HELIO_TRY(actors, http_->send({.target = std::string(kLivingActors), .deadline = kDeadline}));
  if (actors.status != 200) return fail(ErrorCode::unavailable, "the actor table answers {}", actors.status);
  HELIO_TRY(any, parse_any_actor(actors.body));
  out.busy = any;
  return out;
}

}  // namespace helio::ray
