#pragma once
// The use cases of Ray's own Jobs API: jobs under the ids that Ray's clients choose. A submission is a job of heliostat, made in the same
// transaction; everything else is answered from that job.

#include "model/ray_front.h"
#include "service/jobs.h"
#include "service/packages.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::service {

/// A body of POST /api/jobs/, with the shape that its metadata, headers and the configuration give.
struct RaySubmit {
  std::string workspace;
  std::string entrypoint;
  std::optional<std::string> submission_id;
  std::optional<json::Object> runtime_env;
  std::map<std::string, std::string> metadata;
  model::EntrypointResources resources;
  std::map<std::string, std::string> shape;  ///< workers, worker_flavor, head_flavor, image, priority, name: these win over metadata
};

struct RayJob {
  model::RaySubmission submission;
  model::Job job;
  bool ran = false;  ///< of a job that has not ended: some attempt submitted its entrypoint
};

/// Ray's five statuses. A job that ran once does not go back to PENDING.
std::string_view ray_status(const RayJob& job);
/// What stands in `message`: Ray's own sentence, after ours where ours says more.
std::string ray_message(const RayJob& job);
/// Ray's `error_type`; empty: null. Causes that Ray does not know begin with HELIOSTAT_.
std::string ray_error_type(const model::Job& job);

/// Any thread.
class RayJobs {
 public:
  RayJobs(store::Store& store, Jobs& jobs, Packages& packages, const Clock& clock, Rng& rng)
      : store_(store), jobs_(jobs), packages_(packages), clock_(clock), rng_(rng) {}

  /// The submission's id. Errors: already_exists; those of Jobs::submit with the path of the field in a JobSpec; not_found for a package
  /// that this workspace does not have.
  Result<std::string> submit(const Caller& caller, const RaySubmit& request);
  /// In order of submission.
  Result<std::vector<RayJob>> list(const std::string& workspace);
  /// Error: not_found.
  Result<RayJob> get(const std::string& workspace, const std::string& id);
  /// False: it had ended.
  Result<bool> stop(const Caller& caller, const RayJob& job);
  /// Error: precondition_failed while it lives.
  Result<void> remove(const Caller& caller, const RayJob& job);

  Result<bool> has_package(const std::string& workspace, const std::string& name);
  /// Takes the file over. Errors: those of Packages::put.
  Result<void> put_package(const Caller& caller, const std::string& workspace, const std::string& name, const std::string& file);

 private:
  Result<json::Object> with_own_packages(const std::string& workspace, const json::Object& runtime_env);
  Result<std::string> own_address(const std::string& workspace, std::string_view uri, const std::string& path);

  store::Store& store_;
  Jobs& jobs_;
  Packages& packages_;
  const Clock& clock_;
  Rng& rng_;
};

}  // namespace helio::service
