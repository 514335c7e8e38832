#pragma once
// Deadlines that clock jumps cannot move: the wall clock says how much of a limit has passed when a deadline is first seen, the monotonic
// clock does the rest. Single thread.

#include "base/clock.h"

#include <map>
#include <string>

namespace helio::control {

class Deadlines {
 public:
  /// What is left of `limit` since `since`; zero or less when it has passed. `scope` groups what is forgotten together.
  Duration left(const std::string& scope, const std::string& name, Timestamp since, Duration limit, Timestamp wall, MonoTime mono);
  void forget(const std::string& scope, const std::string& name);
  void forget(const std::string& scope);

 private:
  std::map<std::string, std::map<std::string, MonoTime>> due_;
};

}  // namespace helio::control
