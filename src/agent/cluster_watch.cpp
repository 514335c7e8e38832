#include "agent/cluster_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "ray/start_command.h"

#include <fmt/format.h>
#include <utility>

namespace helio::agent {

namespace {
constexpr Duration kRowsEvery = 1s;     ///< once the cluster is complete
constexpr Duration kRowsEarly = 500ms;  ///< while a submission would fail anyway: each question costs the starting head CPU
constexpr Duration kStopRetry = 500ms;
}  // namespace

ClusterWatch::ClusterWatch(Executor& http, model::Assignment assignment, std::function<void(ClusterView)> on_view,
                           std::function<void(PostResult)> on_post)
    : http_(http), assignment_(std::move(assignment)), on_view_(std::move(on_view)), on_post_(std::move(on_post)) {}

void ClusterWatch::set_period(Duration every) {
  every_ = every;
  http_.cancel(timer_);
  timer_ = 0;
  if (every_.count() > 0) ask();
}

void ClusterWatch::poke() {
  if (every_.count() <= 0) return;
  http_.cancel(timer_);
  ask();
}

void ClusterWatch::close() {
  closed_ = true;
  http_.cancel(timer_);
}

void ClusterWatch::schedule() {
  if (closed_ || every_.count() <= 0) return;
  timer_ = http_.after(every_, [this] { ask(); });
}

bool ClusterWatch::open() {
  if (jobs_ && nodes_ && agent_ && activity_) return true;
  const bool ours = !assignment_.submitter;
  const ray::Ports ports{ours ? assignment_.port_base : assignment_.head_port_base};
  const ray::Endpoint dashboard{fmt::format("http://127.0.0.1:{}", ports.dashboard()), assignment_.ray_token_file};
  const ray::Endpoint agent{fmt::format("http://{}:{}", ours ? assignment_.address : assignment_.head_address, ports.agent_http()),
                            assignment_.ray_token_file};
  auto jobs = ray::JobsClient::create(dashboard);
  auto nodes = ray::NodesClient::create(dashboard);
  auto own = ray::AgentClient::create(agent);
  auto activity = ray::ActivityClient::create(dashboard);
  const Error* why = !jobs ? &jobs.error() : !nodes ? &nodes.error() : !own ? &own.error() : !activity ? &activity.error() : nullptr;
  if (why != nullptr) {
    log::warn("cannot talk to the cluster: {}", why->text());
    return false;
  }
  activity_ = std::move(*activity);
  jobs_ = std::move(*jobs);
  nodes_ = std::move(*nodes);
  agent_ = std::move(*own);
  return true;
}

void ClusterWatch::ask() {
  if (closed_ || !open()) return schedule();
  ClusterView view;
  if (!api_up_) {
    api_up_ = jobs_->version().has_value();
    view.api_up = api_up_;
  }
  if (api_up_ && !head_agent_up_) {
    head_agent_up_ = agent_->healthy();
    view.head_agent_up = head_agent_up_;
  }
  if (api_up_) {
    const MonoTime now = SystemClock::instance().mono();
    const bool complete = alive_ >= static_cast<std::size_t>(assignment_.nodes);
    const Duration wait = complete ? kRowsEvery : head_agent_up_ ? Duration{0} : kRowsEarly;
    if (!assignment_.submitter && (every_ >= kRowsEvery || !rows_at_ || now - *rows_at_ >= wait)) {
      if (auto rows = nodes_->rows()) {
        rows_at_ = now;
        alive_ = 0;
        for (const ray::NodeRow& row : *rows) alive_ += row.alive ? 1 : 0;
        view.rows = std::move(*rows);
      }
    }
    if (assignment_.watch_idle.d > Duration(0) && head_agent_up_) ask_for_activity(now, view);
    if (follow_driver_ && assignment_.driver) {
      auto record = jobs_->get(assignment_.driver->submission_id);
      if (record) {
        view.driver = std::move(*record);
      } else {
        view.driver_absent = record.error().code() == ErrorCode::not_found;
      }
    }
  }
  on_view_(std::move(view));
  schedule();
}

void ClusterWatch::ask_for_activity(MonoTime now, ClusterView& view) {
  if (activity_at_ && now - *activity_at_ < assignment_.watch_idle.d) return;
  activity_at_ = now;
  view.activity_asked = true;
  if (auto activity = activity_->look()) view.activity = *activity;
}

Result<void> ClusterWatch::put_packages(const model::DriverSpec& driver, ray::SubmitRequest& request) {
  std::map<std::string, std::string> uris;
  for (const model::PackageRef& package : driver.packages) {
    const std::string name = ray::package_name(package.sha256.value);
    if (auto put = jobs_->put_package(name, package.path); !put) return put;
    uris[package.uri] = "gcs://" + name;
  }
  if (request.runtime_env) ray::rewrite_packages(*request.runtime_env, uris);
  return {};
}

void ClusterWatch::submit(const model::DriverSpec& driver) {
  using Post = node::Facts::Post;
  assignment_.driver = driver;
  PostResult result;
  if (!open()) {
    result.post = Post::refused;
    result.error = "the cluster's token cannot be read";
    return on_post_(std::move(result));
  }
  ray::SubmitRequest request;
  request.submission_id = driver.submission_id;
  request.entrypoint = driver.entrypoint;
  request.runtime_env = driver.runtime_env;
  request.metadata = driver.metadata;
  if (driver.resources) {
    request.num_cpus = driver.resources->num_cpus;
    request.num_gpus = driver.resources->num_gpus;
    request.memory = driver.resources->memory.n;
    request.resources = driver.resources->resources;
  }
  if (auto put = put_packages(driver, request); !put) {
    // Nothing was POSTed, so it may be tried again; a package that Ray never takes is the end.
    result.post = Post::refused;
    result.final = put.error().code() != ErrorCode::unavailable && put.error().code() != ErrorCode::deadline_exceeded;
    result.error = put.error().message();
  } else {
    const ray::SubmitAnswer answer = jobs_->submit(request);
    result.error = answer.message;
    switch (answer.outcome) {
      case ray::SubmitOutcome::accepted:
        result.post = Post::accepted;
        break;
      case ray::SubmitOutcome::refused:
        result.post = Post::refused;
        break;
      case ray::SubmitOutcome::refused_final:
        result.post = Post::refused;
        result.final = true;
        break;
      case ray::SubmitOutcome::unclear:
        result.post = Post::unclear;
        break;
    }
  }
  follow_driver_ = true;
  on_post_(std::move(result));
  poke();
}

void ClusterWatch::stop_driver() {
  if (closed_ || !assignment_.driver || !open()) return;
  const auto stopped = jobs_->stop(assignment_.driver->submission_id);
  if (stopped || stopped.error().code() == ErrorCode::not_found) return poke();
  log::warn("stop of the driver: {}", stopped.error().text());
  http_.after(kStopRetry, [this] { stop_driver(); });
}

}  // namespace helio::agent
