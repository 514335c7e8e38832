#pragma once
#include <compare>
#include <optional>
#include <string_view>

namespace helio::model {

/// Major and minor of a Ray version: what its behaviour is told by.
struct RayVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const RayVersion&) const = default;
};

inline constexpr RayVersion kRayTokens{2, 52};      ///< token authentication
inline constexpr RayVersion kRayOwnTempDir{2, 55};  ///< a worker's --temp-dir counts; before, every node uses the head's path

inline constexpr RayVersion kRayDrain{2, 30};  ///< has `ray drain-node`; tested with 2.60

/// "2.60.0" -> {2, 60}; empty for "nightly" and the like.
std::optional<RayVersion> parse_ray_version(std::string_view text);
/// An unreadable version knows none.
bool ray_has_tokens(std::string_view version);
/// Its nodes can leave without losing work. An unreadable version's cannot.
bool ray_can_drain(std::string_view version);

}  // namespace helio::model
