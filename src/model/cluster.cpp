#include "model/cluster.h"

#include "base/json/describe.h"

namespace helio::model {
BOOST_DESCRIBE_STRUCT(Placement, (), (node, host, role, index, group, flavor, resources, gpus))
BOOST_DESCRIBE_STRUCT(Attempt, (),
                      (id, revision, job, number, state, reason, created, state_since, finished, cluster, placement, marks, driver, verdict,
                       stop_asked, image, ray_version, guest_of))
BOOST_DESCRIBE_STRUCT(Cluster, (),
                      (id, revision, attempt, job, state, reason, created, state_since, retained_until, retain, slot, nodes, dashboard))
BOOST_DESCRIBE_STRUCT(ClusterName, (), (workspace, name, job, revision))
BOOST_DESCRIBE_ENUM(ProviderState, unknown, absent, running, ended)
BOOST_DESCRIBE_STRUCT(ProviderFact, (), (state, detail, exit_code, cause, at))
BOOST_DESCRIBE_STRUCT(Node, (),
                      (id, revision, cluster, attempt, job, host, role, index, state, reason, created, state_since, placement, generation,
                       desired, stop_driver, added, leaving, status, fact, token_hash, connected, address, port_base))
}  // namespace helio::model

HELIO_JSON_DEFINE(helio::model::Placement)
HELIO_JSON_DEFINE(helio::model::Attempt)
HELIO_JSON_DEFINE(helio::model::Cluster)
HELIO_JSON_DEFINE(helio::model::ClusterName)
HELIO_JSON_DEFINE_ENUM(helio::model::ProviderState)
HELIO_JSON_DEFINE(helio::model::ProviderFact)
HELIO_JSON_DEFINE(helio::model::Node)
