#include "cli/spec_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace helio::cli {

void add_node_options(CLI::App& command, SpecFlags& f) {
  command.add_option("--workers", f.workers, "worker nodes: N, N:FLAVOR, or name=NAME,count=N,flavor=FLAVOR for each group")
      ->allow_extra_args(false)
      ->group("Shape");
  command.add_option("--head-flavor", f.head_flavor, "flavor of the head")->group("Shape");
  command.add_flag("--head-schedulable", f.head_schedulable, "let tasks run on the head too")->group("Shape");
  command.add_option("--image", f.image, "image that every node runs in (default: default)")->group("Shape");
  command.add_option("--env", f.env, "variable of every node: NAME=VALUE, or NAME to take yours (repeatable)")
      ->allow_extra_args(false)
      ->group("Code");
  command.add_option("--secret-env", f.secret_env, "the same, sealed and shown as *** everywhere (repeatable)")
      ->allow_extra_args(false)
      ->group("Code");
  command.add_option("--env-file", f.env_files, "file of NAME=VALUE lines (repeatable)")->allow_extra_args(false)->group("Code");
  command.add_option("--mount", f.mounts, "host folder: SOURCE[:TARGET][:ro], where the pool allows it (repeatable)")
      ->allow_extra_args(false)
      ->group("Code");
}

void add_policy_options(CLI::App& command, SpecFlags& f) {
  command.add_option("--priority", f.priority, "1 to 9, 9 first (default 5)")->group("Policy");
  command.add_option("--max-run-time", f.max_run_time, "of one attempt, once it runs, such as 2h")->group("Policy");
  command.add_option("--max-total-time", f.total_time, "over all attempts")->group("Policy");
  command.add_option("--pending-deadline", f.pending_deadline, "give up after so long in the queue")->group("Policy");
  command.add_option("--readiness", f.readiness, "all nodes must be alive by then (default 10m)")->group("Policy");
  command.add_option("--stop-grace", f.stop_grace, "between the stop signal and the kill (default 30s)")->group("Policy");
  command.add_option("--retries", f.retries, "CLASS=N: further attempts for platform, node, unknown, user (repeatable)")
      ->allow_extra_args(false)
      ->group("Policy");
  command.add_option("--retain", f.retain, "keep nodes after the end: head=10m or all=10m")->group("Policy");
  command.add_option("--disk-limit", f.disk_limit, "of a node's folder, such as 5GiB")->group("Policy");
  command.add_option("--log-limit", f.log_limit, "of all logs of an attempt")->group("Policy");
  command.add_option("--label", f.labels, "KEY=VALUE for people and tools (repeatable)")->allow_extra_args(false)->group("Policy");
}

std::optional<std::string> from_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace helio::cli
