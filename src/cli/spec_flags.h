#pragma once
// From flags and job files to the document that POST /v1/jobs takes. Only what the user said is written: defaults are the daemon's.

#include "base/json/json.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace helio::cli {

struct SpecFlags {
  std::string file;  ///< job file, YAML or JSON; flags win over it
  std::string name;
  std::string cluster;  ///< long-lived cluster to run in
  std::string image;
  std::vector<std::string> workers;  ///< N, N:FLAVOR or name=…,count=…,flavor=…
  std::string head_flavor;
  bool head_schedulable = false;
  std::vector<std::string> env;         ///< K=V, or K from the caller's environment
  std::vector<std::string> secret_env;  ///< the same
  std::vector<std::string> env_files;
  std::vector<std::string> pip;
  std::string requirements;  ///< file
  std::string runtime_env;   ///< JSON text or file
  std::string working_dir;
  std::vector<std::string> py_modules;
  std::vector<std::string> excludes;
  std::string script;    ///< file
  std::string language;  ///< of the script
  std::string command;   ///< one shell line
  std::optional<int> priority;
  std::string max_run_time;
  std::string total_time;
  std::string pending_deadline;
  std::string idle;  ///< of a long-lived cluster
  std::string readiness;
  std::string stop_grace;
  std::vector<std::string> retries;  ///< class=n
  std::string retain;                ///< head=10m, all=10m
  std::string completion;
  std::optional<double> num_cpus;
  std::optional<double> num_gpus;
  std::string memory;
  std::vector<std::string> mounts;  ///< SOURCE[:TARGET][:ro]
  std::vector<std::string> labels;  ///< k=v
  std::string disk_limit;
  std::string log_limit;
};

/// Value of a variable of the caller's environment.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// `argv` is what stood after "--". Local paths in runtime_env stay as they are: upload_code() replaces them.
/// Errors: invalid_argument naming the flag, not_found for a missing file.
Result<json::Object> build_spec(const SpecFlags& flags, const std::vector<std::string>& argv, const Environment& environment);

/// The document that POST /v1/clusters takes: what has to do with a shape, nodes and limits. Errors as build_spec().
Result<json::Object> build_cluster_spec(const SpecFlags& flags, const Environment& environment);

/// A YAML or JSON document, by its content. Errors name the file.
Result<json::Value> read_document(const std::string& path);

}  // namespace helio::cli
