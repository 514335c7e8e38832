#include "model/pool.h"

#include "base/json/describe.h"

namespace helio::model {
BOOST_DESCRIBE_STRUCT(Resources, (), (cpu, memory, shm, gpus))
BOOST_DESCRIBE_STRUCT(Flavor, (), (name, resources, gpu_model, virtual_gpus, about, revision, created))
BOOST_DESCRIBE_STRUCT(Image, (), (name, prefix, python_version, ray_version, ray_commit, allow_no_token, revision, created))
BOOST_DESCRIBE_STRUCT(Gpu, (), (index, model, memory, is_virtual))
BOOST_DESCRIBE_STRUCT(Host, (),
                      (id, state, reason, capacity, physical_cpu, cpu_overcommit, gpus, isolation, limits, address, revision, created))
}  // namespace helio::model

HELIO_JSON_DEFINE(helio::model::Resources)
HELIO_JSON_DEFINE(helio::model::Flavor)
HELIO_JSON_DEFINE(helio::model::Image)
HELIO_JSON_DEFINE(helio::model::Gpu)
HELIO_JSON_DEFINE(helio::model::Host)
