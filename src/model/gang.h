#pragma once
#include "base/error.h"
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

/// The gang of a resolved spec; always the same for the same input. Error: not_found when a flavor is gone.
Result<std::vector<Member>> members_of(const JobSpec& resolved, const std::map<std::string, Flavor>& flavors);

}  // namespace helio::model
