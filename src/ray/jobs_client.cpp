#include "ray/jobs_client.h"

#include <fmt/format.h>
#include <unistd.h>
#include <charconv>
#include <fstream>
#include <sstream>

namespace helio::ray {

namespace {

constexpr Duration kReadDeadline = 5s;
constexpr Duration kWriteDeadline = 30s;     ///< the first POST takes seconds on old versions
constexpr Duration kPackageDeadline = 120s;  ///< 100 MiB on a busy machine

std::string short_text(std::string_view body) { return std::string(body.substr(0, 2000)); }

std::string text_of(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// "… failed with exit code 3, …": what Ray before it had driver_exit_code leaves of it.
std::optional<std::int32_t> exit_code_in(std::string_view message) {
  constexpr std::string_view kText = "exit code ";
  const std::size_t at = message.find(kText);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = message.substr(at + kText.size());
  std::int32_t code = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), code).ec != std::errc()) return std::nullopt;
  return code;
}

}  // namespace

Result<std::unique_ptr<net::HttpClient>> open_client(const Endpoint& endpoint) {
  // Old dashboards fail with 500 on requests without one; newer ones take "Mozilla" for a browser and refuse writes.
  net::Headers headers{{"User-Agent", "heliostat"}};
  if (!endpoint.token_file.empty()) {
    std::ifstream file(endpoint.token_file);
    if (!file) return fail(ErrorCode::not_found, "the cluster's token file {} cannot be read", endpoint.token_file);
    std::stringstream text;
    text << file.rdbuf();
    std::string token = text.str();
    while (!token.empty() && (token.back() == '\n' || token.back() == ' ')) token.pop_back();
    headers.emplace_back("Authorization", "Bearer " + token);
  }
  return net::HttpClient::create(endpoint.url, std::move(headers));
}

Result<std::unique_ptr<JobsClient>> JobsClient::create(const Endpoint& dashboard) {
  HELIO_TRY(http, open_client(dashboard));
  return std::make_unique<JobsClient>(std::move(http));
}

Result<std::string> JobsClient::version() {
  HELIO_TRY(response, http_->send({.target = "/api/version", .deadline = kReadDeadline}));
  if (response.status != 200) return fail(ErrorCode::unavailable, "the dashboard answers {}", response.status);
  HELIO_TRY(value, json::parse(response.body));
  if (!value.is_object()) return fail(ErrorCode::unavailable, "the dashboard's version is not an object");
  return text_of(value.get_object(), "ray_version");
}

Result<void> JobsClient::put_package(const std::string& name, const std::string& file) {
  const std::string target = "/api/packages/gcs/" + net::url_encode(name);
  HELIO_TRY(there, http_->send({.target = target, .deadline = kReadDeadline}));
  if (there.status == 200) return {};
  HELIO_TRY(put, http_->send({.method = "PUT", .target = target, .body_file = file, .deadline = kPackageDeadline}));
  if (put.status == 200) return {};
  if (put.status == 413) return fail(ErrorCode::resource_exhausted, "Ray takes no package over 100 MiB: {}", short_text(put.body));
  return fail(ErrorCode::unavailable, "the cluster answers {} to package {}: {}", put.status, name, short_text(put.body));
}

json::Object submit_body(const SubmitRequest& request) {
  json::Object body{{"submission_id", request.submission_id}, {"entrypoint", request.entrypoint}};
  if (request.runtime_env && !request.runtime_env->empty()) body["runtime_env"] = *request.runtime_env;
  if (!request.metadata.empty()) body["metadata"] = json::encode(request.metadata);
  if (request.num_cpus.value_or(0) > 0) body["entrypoint_num_cpus"] = *request.num_cpus;
  if (request.num_gpus.value_or(0) > 0) body["entrypoint_num_gpus"] = *request.num_gpus;
  if (request.memory.value_or(0) > 0) body["entrypoint_memory"] = *request.memory;
  if (!request.resources.empty()) body["entrypoint_resources"] = json::encode(request.resources);
  return body;
}

SubmitAnswer JobsClient::submit(const SubmitRequest& request) {
  auto sent = http_->send({.method = "POST",
                           .target = "/api/jobs/",
                           .headers = {{"Content-Type", "application/json"}},
                           .body = json::dump(submit_body(request)),
                           .deadline = kWriteDeadline});
  if (!sent) return {SubmitOutcome::unclear, sent.error().message()};
  if (sent->status == 200) return {SubmitOutcome::accepted, {}};
  const std::string text = short_text(sent->body);
  if (text.find("already exists") != std::string::npos) return {SubmitOutcome::accepted, {}};
  if (sent->status >= 400 && sent->status < 500) return {SubmitOutcome::refused_final, fmt::format("{} {}", sent->status, text)};
  // Ray answered that it failed. Should that submission turn up later after all, a second one of the same id is told "already exists".
  return {SubmitOutcome::refused, fmt::format("{} {}", sent->status, text)};
}

Result<JobRecord> parse_job(std::string_view body) {
  HELIO_TRY(value, json::parse(body));
  if (!value.is_object()) return fail(ErrorCode::unavailable, "a job record is not an object");
  const json::Object& object = value.get_object();
  JobRecord record;
  record.status = text_of(object, "status");
  record.error_type = text_of(object, "error_type");
  record.message = text_of(object, "message");
  record.driver_node_id = text_of(object, "driver_node_id");
  if (const json::Value* code = object.if_contains("driver_exit_code"); code != nullptr && code->is_int64()) {
    record.exit_code = static_cast<std::int32_t>(code->get_int64());
  } else if (record.status == "FAILED") {
    record.exit_code = exit_code_in(record.message);
  } else if (record.status == "SUCCEEDED") {
    record.exit_code = 0;
  }
  if (record.status.empty()) return fail(ErrorCode::unavailable, "a job record has no status");
  return record;
}

Result<JobRecord> JobsClient::get(const std::string& submission_id) {
  HELIO_TRY(response, http_->send({.target = "/api/jobs/" + net::url_encode(submission_id), .deadline = kReadDeadline}));
  if (response.status == 404) return fail(ErrorCode::not_found, "the cluster has no job {}", submission_id);
  if (response.status != 200) return fail(ErrorCode::unavailable, "the cluster answers {}", response.status);
  return parse_job(response.body);
}

Result<bool> JobsClient::stop(const std::string& submission_id) {
  HELIO_TRY(response,
            http_->send({.method = "POST", .target = "/api/jobs/" + net::url_encode(submission_id) + "/stop", .deadline = kWriteDeadline}));
  if (response.status == 404) return fail(ErrorCode::not_found, "the cluster has no job {}", submission_id);
  if (response.status != 200) return fail(ErrorCode::unavailable, "the cluster answers {} to stop", response.status);
  HELIO_TRY(value, json::parse(response.body));
  const json::Value* stopped = value.is_object() ? value.get_object().if_contains("stopped") : nullptr;
  return stopped != nullptr && stopped->is_bool() && stopped->get_bool();
}

void rewrite_packages(json::Object& runtime_env, const std::map<std::string, std::string>& uris) {
  const auto rewrite = [&](json::Value& value) {
    if (!value.is_string()) return;
    if (const auto found = uris.find(std::string(value.get_string())); found != uris.end()) value = found->second;
  };
  if (json::Value* dir = runtime_env.if_contains("working_dir"); dir != nullptr) rewrite(*dir);
  json::Value* modules = runtime_env.if_contains("py_modules");
  if (modules == nullptr || !modules->is_array()) return;
  for (json::Value& module : modules->get_array()) rewrite(module);
}

std::string package_name(std::string_view sha256) { return fmt::format("_ray_pkg_{}.zip", sha256.substr(0, 16)); }

}  // namespace helio::ray
