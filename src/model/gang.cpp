#include "model/gang.h"

#include <algorithm>
#include <utility>

namespace helio::model {
namespace {

/// Far above any pool; keeps a count that a user mistyped from filling the memory.
constexpr std::size_t kMaxNodes = 10'000;
constexpr std::int32_t kMostIndices = 250;  ///< of one cluster that grows: the local backend has addresses for so many

Result<Resources> shape_of(const std::optional<std::string>& flavor, const std::map<std::string, Flavor>& flavors,
                           const std::string& path) {
  if (!flavor) return fail(Error(ErrorCode::invalid_argument, "the spec is not resolved: no flavor").at(path));
  const auto found = flavors.find(*flavor);
  if (found == flavors.end()) return fail(Error(ErrorCode::not_found, fmt::format("no flavor '{}'", *flavor)).at(path));
  return found->second.resources;
}

}  // namespace

Result<std::vector<Member>> members_of(const JobSpec& resolved, const std::map<std::string, Flavor>& flavors) {
  std::vector<Member> members;
  if (resolved.cluster) return std::vector{Member{Role::head, 0, "head", {}, {}}};
  HELIO_TRY(head, shape_of(resolved.head.flavor, flavors, "$.head.flavor"));
  members.push_back({Role::head, 0, "head", *resolved.head.flavor, head});
  for (std::size_t i = 0; i < resolved.workers.size(); ++i) {
    const WorkerGroup& group = resolved.workers[i];
    HELIO_TRY(shape, shape_of(group.flavor, flavors, fmt::format("$.workers[{}].flavor", i)));
    if (group.count < 0 || std::cmp_greater(group.count, kMaxNodes - members.size())) {
      return fail(Error(ErrorCode::invalid_argument, fmt::format("a cluster has at most {} nodes", kMaxNodes))
                      .at(fmt::format("$.workers[{}].count", i)));
    }
    for (std::int32_t k = 0; k < group.count; ++k) {
      members.push_back({Role::worker, static_cast<std::int32_t>(members.size()), group.name, *group.flavor, shape});
    }
  }
  return members;
}

bool is_staying(const Node& node) { return node.role == Role::worker && !node.leaving && node.state != NodeState::gone; }

Result<std::vector<Member>> members_missing(const JobSpec& resolved, const std::vector<const Node*>& nodes,
                                            const std::map<std::string, Flavor>& flavors) {
  HELIO_TRY(all, members_of(resolved, flavors));
  std::map<std::string, std::int32_t> there;
  std::int32_t next = 1;
  for (const Node* node : nodes) {
    if (is_staying(*node)) ++there[node->placement.group];
    next = std::max(next, node->index + 1);
  }
  std::vector<Member> missing;
  for (Member& member : all) {
    if (member.role != Role::worker || there[member.group]-- > 0) continue;
    member.index = next++;
    missing.push_back(std::move(member));
  }
  if (!missing.empty() && next > kMostIndices) {
    return fail(ErrorCode::resource_exhausted, "the cluster has had {} workers in all, and there can be no more; make it again",
                nodes.size() - 1);
  }
  return missing;
}

}  // namespace helio::model
