#include "ray/version.h"

#include <array>
#include <charconv>

namespace helio::ray {

std::optional<Version> parse_version(std::string_view text) {
  std::array<int, 3> parts{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || parts[i] < 0) {
      if (i < 2) return std::nullopt;
      break;
    }
    at = next;
    if (at == end || *at != '.') {
      if (i < 1) return std::nullopt;
      break;
    }
    ++at;
  }
  return Version{parts[0], parts[1], parts[2]};
}

Features features_of(const Version& version) {
  return {
      .own_temp_dir = version >= Version{2, 55, 0},
      .token = version >= Version{2, 52, 0},
      .node_label = version >= Version{2, 55, 0},
      .label_pairs = version >= Version{2, 47, 0},
      .log_monitor_flag = version >= Version{2, 55, 0},
      .start_hook = version >= Version{2, 60, 0} && version < Version{2, 61, 0},
  };
}

}  // namespace helio::ray
