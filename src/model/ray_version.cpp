#include "model/ray_version.h"

#include <charconv>

namespace helio::model {

std::optional<RayVersion> parse_ray_version(std::string_view text) {
  RayVersion out;
  const char* const end = text.data() + text.size();
  const auto dot = std::from_chars(text.data(), end, out.major);
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return std::nullopt;
  if (std::from_chars(dot.ptr + 1, end, out.minor).ec != std::errc()) return std::nullopt;
  return out;
}

bool ray_has_tokens(std::string_view version) {
  const auto parsed = parse_ray_version(version);
  return parsed && *parsed >= kRayTokens;
}

bool ray_can_drain(std::string_view version) {
  const auto parsed = parse_ray_version(version);
  return parsed && *parsed >= kRayDrain;
}

}  // namespace helio::model
