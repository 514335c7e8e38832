#pragma once
#include "base/error.h"
#include "model/cluster.h"
#include "model/job.h"
#include "model/pool.h"

#include <map>
#include <string>
#include <vector>

namespace helio::model {

/// One pod of a gang, before it has a place. The head first, then workers in order of their groups.
struct Member {
  Role role = Role::worker;
  std::int32_t index = 0;
  std::string group;
  std::string flavor;
  Resources resources;
};

/// The gang of a resolved spec; always the same for the same input. Of a job inside a long-lived cluster: its submitter, which takes
/// nothing of the pool. Error: not_found when a flavor is gone.
Result<std::vector<Member>> members_of(const JobSpec& resolved, const std::map<std::string, Flavor>& flavors);

/// What a running cluster lacks of the workers that its spec asks for: with indices above all that it ever had. `nodes`: of the cluster,
/// also those that are gone. Errors: as members_of(); resource_exhausted when it has had so many that there is no index left.
Result<std::vector<Member>> members_missing(const JobSpec& resolved, const std::vector<const Node*>& nodes,
                                            const std::map<std::string, Flavor>& flavors);
/// A worker that counts to what its group shall have.
bool is_staying(const Node& node);

}  // namespace helio::model
