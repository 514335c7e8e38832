#include "provider/local/launch.h"

#include "base/json/describe.h"
#include "proc/files.h"

namespace helio::provider::local {
BOOST_DESCRIBE_STRUCT(LaunchRecord, (),
                      (node, home, home_id, daemon_file, daemon_url, agent, temp_dir, head_temp_dir, bind_temp_dir, port_base, cgroup,
                       isolation, generation, created))
BOOST_DESCRIBE_STRUCT(EndRecord, (), (fact, harvested))

std::optional<model::AgentStatus> read_final(const NodeFolder& folder) {
  const auto text = proc::read_file(folder.final_status());
  if (!text) return std::nullopt;
  auto status = json::parse_as<model::AgentStatus>(*text, json::Unknown::ignore);
  return status ? std::optional(std::move(*status)) : std::nullopt;
}
}  // namespace helio::provider::local

HELIO_JSON_DEFINE(helio::provider::local::LaunchRecord)
HELIO_JSON_DEFINE(helio::provider::local::EndRecord)
