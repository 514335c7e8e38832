#pragma once
// From what a user wrote to a spec without gaps; pure.

#include "base/error.h"
#include "model/job.h"
#include "model/pool.h"
#include "model/settings.h"
#include "sched/sched.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace helio::service {

/// What resolving looks up.
struct Catalog {
  std::map<std::string, model::Flavor> flavors;
  std::map<std::string, model::Image> images;
  std::vector<sched::HostView> hosts;
  model::Settings settings;
  std::function<bool(std::string_view)> has_package;  ///< by SHA-256; empty: not asked
};

struct Resolved {
  model::JobSpec spec;
  std::vector<sched::Member> members;  ///< head first, then workers in order of groups
  std::vector<std::string> warnings;
};

/// Checks every field (platform rules of docs/en/jobs.md) and fills every default. The first error wins; its path names the field.
/// `cluster`: of a job that runs in a long-lived cluster, the cluster's.
Result<Resolved> resolve(const model::JobSpec& spec, const Catalog& catalog, const model::JobSpec* cluster = nullptr);
/// Ray's runtime_env: fields, types, exclusions. `path` is where it stands.
Result<void> check_runtime_env(const json::Object& runtime_env, const std::string& path);

}  // namespace helio::service
