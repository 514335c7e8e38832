#pragma once
#include <compare>
#include <optional>
#include <string_view>

namespace helio::ray {

/// "2.60.0"; suffixes such as "rc1" are dropped.
struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const Version&) const = default;
};
std::optional<Version> parse_version(std::string_view text);

/// What differs between Ray versions, in one place.
struct Features {
  bool own_temp_dir = true;      ///< 2.55: a worker's --temp-dir counts; before, every node uses the head's path
  bool token = true;             ///< 2.52: RAY_AUTH_MODE
  bool node_label = true;        ///< 2.55: our node id travels as a label; before, as the node's name, since the form of --labels changed
  bool label_pairs = true;       ///< --labels=k=v; before, a JSON object
  bool log_monitor_flag = true;  ///< --include-log-monitor
  bool start_hook = false;       ///< trimming by private names, tested on this version
};
Features features_of(const Version& version);

}  // namespace helio::ray
