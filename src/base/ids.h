#pragma once
// Strong ids: never a bare string between functions. JSON form: the string.

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace helio {

template <class Tag>
struct Id {
  std::string value;

  Id() = default;
  explicit Id(std::string v) : value(std::move(v)) {}
  [[nodiscard]] bool empty() const { return value.empty(); }
  [[nodiscard]] const std::string& str() const { return value; }
  auto operator<=>(const Id&) const = default;
};

using JobId = Id<struct JobTag>;          ///< j-… (16 characters of base32)
using AttemptId = Id<struct AttemptTag>;  ///< <job>-<n>, n from 1
using ClusterId = Id<struct ClusterTag>;  ///< of an attempt: c-<attempt>
using NodeId = Id<struct NodeTag>;        ///< <attempt>-h for the head, <attempt>-w<k> for workers, k from 1
using HostId = Id<struct HostTag>;
using ImageId = Id<struct ImageTag>;      ///< its name
using FlavorId = Id<struct FlavorTag>;    ///< its name
using PackageId = Id<struct PackageTag>;  ///< SHA-256 of the content, 64 hex digits
using TokenId = Id<struct TokenTag>;
using SessionId = Id<struct SessionTag>;  ///< s-… (16 characters of base32)

}  // namespace helio

template <class Tag>
struct std::hash<helio::Id<Tag>> {
  std::size_t operator()(const helio::Id<Tag>& id) const noexcept { return std::hash<std::string>{}(id.value); }
};
