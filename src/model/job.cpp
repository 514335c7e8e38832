#include "model/job.h"

#include "base/json/describe.h"

namespace helio::model {
BOOST_DESCRIBE_STRUCT(EntrypointResources, (), (num_cpus, num_gpus, memory, resources))
BOOST_DESCRIBE_STRUCT(Entrypoint, (), (argv, command, script, language, resources))
BOOST_DESCRIBE_STRUCT(HeadSpec, (), (flavor, schedulable, object_store_memory))
BOOST_DESCRIBE_STRUCT(WorkerGroup, (), (name, count, flavor, labels, resources, object_store_memory))
BOOST_DESCRIBE_STRUCT(EnvVar, (), (name, value, secret))
BOOST_DESCRIBE_ENUM(JobType, job, cluster)
BOOST_DESCRIBE_ENUM(Role, head, worker)
BOOST_DESCRIBE_ENUM(Completion, driver, all)
BOOST_DESCRIBE_ENUM(Retain, none, head, all)
BOOST_DESCRIBE_STRUCT(RetryPolicy, (), (platform, node, unknown, user, backoff, max_backoff))
BOOST_DESCRIBE_STRUCT(Limits, (), (pending, readiness, run, total, stop_grace, idle))
BOOST_DESCRIBE_STRUCT(Retention, (), (nodes, time))
BOOST_DESCRIBE_STRUCT(Mount, (), (source, target, read_only))
BOOST_DESCRIBE_STRUCT(RayOptions, (), (log_to_driver, dashboard_full))
BOOST_DESCRIBE_STRUCT(JobSpec, (),
                      (type, name, workspace, queue, priority, entrypoint, cluster, image, head, workers, runtime_env, requirements, env,
                       mounts, completion, retries, limits, retention, ray, checks, labels, log_limit, disk_limit))
BOOST_DESCRIBE_STRUCT(Mark, (), (name, at))
BOOST_DESCRIBE_ENUM(StopReason, none, user, deadline, removed)
BOOST_DESCRIBE_STRUCT(Job, (),
                      (id, revision, owner, spec, state, reason, created, state_since, queued_since, first_admitted, finished, idle_since,
                       growing_since, not_before, stop, stop_asked, attempts, current_attempt, verdict, exit_code, ledger, rerun_of,
                       guest_of, warnings))
}  // namespace helio::model

HELIO_JSON_DEFINE(helio::model::EntrypointResources)
HELIO_JSON_DEFINE(helio::model::Entrypoint)
HELIO_JSON_DEFINE(helio::model::HeadSpec)
HELIO_JSON_DEFINE(helio::model::WorkerGroup)
HELIO_JSON_DEFINE(helio::model::EnvVar)
HELIO_JSON_DEFINE_ENUM(helio::model::JobType)
HELIO_JSON_DEFINE_ENUM(helio::model::Role)
HELIO_JSON_DEFINE_ENUM(helio::model::Completion)
HELIO_JSON_DEFINE_ENUM(helio::model::Retain)
HELIO_JSON_DEFINE(helio::model::RetryPolicy)
HELIO_JSON_DEFINE(helio::model::Limits)
HELIO_JSON_DEFINE(helio::model::Retention)
HELIO_JSON_DEFINE(helio::model::Mount)
HELIO_JSON_DEFINE(helio::model::RayOptions)
HELIO_JSON_DEFINE(helio::model::JobSpec)
HELIO_JSON_DEFINE(helio::model::Mark)
HELIO_JSON_DEFINE_ENUM(helio::model::StopReason)
HELIO_JSON_DEFINE(helio::model::Job)
