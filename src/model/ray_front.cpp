#include "model/ray_front.h"

#include "base/json/describe.h"

namespace helio::model {

BOOST_DESCRIBE_STRUCT(RaySubmission, (), (workspace, submission_id, job, entrypoint, metadata, runtime_env, notes, created, revision))
BOOST_DESCRIBE_STRUCT(RayPackage, (), (workspace, name, sha256, stored, revision))

}  // namespace helio::model

HELIO_JSON_DEFINE(helio::model::RaySubmission)
HELIO_JSON_DEFINE(helio::model::RayPackage)
