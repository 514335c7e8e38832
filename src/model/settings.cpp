#include "model/settings.h"

#include "base/json/describe.h"

namespace helio::model {
BOOST_DESCRIBE_STRUCT(PoolSettings, (),
                      (cpu_overcommit, memory_share, virtual_gpus, head_flavor, worker_flavor, mounts, node_disk, session_root))
BOOST_DESCRIBE_STRUCT(TlsSettings, (), (certificate, key))
BOOST_DESCRIBE_STRUCT(ServerSettings, (), (address, port, tls, package_limit))
BOOST_DESCRIBE_STRUCT(KeepSettings, (), (logs, events, log_total))
BOOST_DESCRIBE_STRUCT(JobsApiSettings, (), (workers, worker_flavor, head_flavor, image))
BOOST_DESCRIBE_STRUCT(Settings, (), (pool, server, keep, jobs_api))
}  // namespace helio::model

HELIO_JSON_DEFINE(helio::model::PoolSettings)
HELIO_JSON_DEFINE(helio::model::TlsSettings)
HELIO_JSON_DEFINE(helio::model::ServerSettings)
HELIO_JSON_DEFINE(helio::model::KeepSettings)
HELIO_JSON_DEFINE(helio::model::JobsApiSettings)
HELIO_JSON_DEFINE(helio::model::Settings)
