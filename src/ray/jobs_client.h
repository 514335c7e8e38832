#pragma once
// A cluster's own Jobs API and packages, over HTTP. Blocking; one thread at a time.

#include "base/error.h"
#include "base/json/json.h"
#include "net/client.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace helio::ray {

/// How to reach an HTTP endpoint of a cluster.
struct Endpoint {
  std::string url;         ///< http://host:port
  std::string token_file;  ///< read for each new client; empty: none
};
/// Client with the cluster's token. Errors: not_found, permission_denied (token file), invalid_argument.
Result<std::unique_ptr<net::HttpClient>> open_client(const Endpoint& endpoint);

struct SubmitRequest {
  std::string submission_id;
  std::string entrypoint;
  std::optional<json::Object> runtime_env;
  std::map<std::string, std::string> metadata;
  std::optional<double> num_cpus;
  std::optional<double> num_gpus;
  std::optional<std::int64_t> memory;
  std::map<std::string, double> resources;
};

enum class SubmitOutcome {
  accepted,       ///< also: it was there already, so an earlier POST arrived
  refused,        ///< the cluster says that it did not take it; it may later
  refused_final,  ///< it never will (4xx)
  unclear,        ///< no answer: it may have arrived
};
struct SubmitAnswer {
  SubmitOutcome outcome = SubmitOutcome::unclear;
  std::string message;
};

struct JobRecord {
  std::string status;      ///< PENDING RUNNING STOPPED SUCCEEDED FAILED
  std::string error_type;  ///< empty before Ray 2.50
  std::string message;
  std::optional<std::int32_t> exit_code;
  std::string driver_node_id;  ///< hex id of Ray's; empty while unknown
};

class JobsClient {
 public:
  /// `dashboard`: the head's dashboard.
  static Result<std::unique_ptr<JobsClient>> create(const Endpoint& dashboard);
  explicit JobsClient(std::unique_ptr<net::HttpClient> http) : http_(std::move(http)) {}

  /// Ray's version; unavailable until the dashboard answers.
  Result<std::string> version();
  /// Puts a file as gcs://<name>; returns at once when the cluster has it. Errors: resource_exhausted (over 100 MiB), unavailable.
  Result<void> put_package(const std::string& name, const std::string& file);
  SubmitAnswer submit(const SubmitRequest& request);
  /// Error not_found: the cluster says that it has no such job.
  Result<JobRecord> get(const std::string& submission_id);
  /// True when a supervisor was there to stop. Fire and forget: the record follows.
  Result<bool> stop(const std::string& submission_id);
  /// Ends the running call from another thread.
  void cancel() { http_->cancel(); }

 private:
  std::unique_ptr<net::HttpClient> http_;
};

/// The body of a submission; what Ray refuses to see (empty values) is left out.
json::Object submit_body(const SubmitRequest& request);
/// Reads GET /api/jobs/<id>.
Result<JobRecord> parse_job(std::string_view body);
/// Replaces the URIs of uploads in working_dir and py_modules. `uris`: from -> to.
void rewrite_packages(json::Object& runtime_env, const std::map<std::string, std::string>& uris);
/// Name of an uploaded zip inside a cluster, from its SHA-256: what Ray expects of a packed folder.
std::string package_name(std::string_view sha256);

}  // namespace helio::ray
