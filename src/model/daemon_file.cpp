#include "model/daemon_file.h"

#include "base/json/describe.h"

namespace helio::model {

BOOST_DESCRIBE_STRUCT(DaemonFile, (), (pid, start_ticks, boot_id, url, version))

}  // namespace helio::model

HELIO_JSON_DEFINE(helio::model::DaemonFile)
