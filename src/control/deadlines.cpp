#include "control/deadlines.h"

#include <algorithm>

namespace helio::control {

Duration Deadlines::left(const std::string& scope, const std::string& name, Timestamp since, Duration limit, Timestamp wall,
                         MonoTime mono) {
  auto& scoped = due_[scope];
  const auto found = scoped.find(name);
  if (found != scoped.end()) return found->second - mono;
  const Duration elapsed = std::max(Duration(0), wall - since);
  scoped.emplace(name, mono + (limit - elapsed));
  return limit - elapsed;
}

void Deadlines::forget(const std::string& scope, const std::string& name) {
  const auto found = due_.find(scope);
  if (found == due_.end()) return;
  found->second.erase(name);
  if (found->second.empty()) due_.erase(found);
}

void Deadlines::forget(const std::string& scope) { due_.erase(scope); }

}  // namespace helio::control
