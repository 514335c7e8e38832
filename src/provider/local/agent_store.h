#pragma once
// Each node keeps the agent binary that it was started with: an upgrade of the program replaces none that runs.

#include "base/error.h"

#include <set>
#include <string>

namespace helio::provider::local {

class AgentStore {
 public:
  /// `binary` is copied to <folder>/<16 hex digits of its SHA-256>/helio-agent when it is first needed and whenever it has changed.
  AgentStore(std::string folder, std::string binary) : folder_(std::move(folder)), binary_(std::move(binary)) {}
  /// Path of the copy. Errors: not_found, resource_exhausted. One thread.
  Result<std::string> current();
  /// Removes copies that are neither in `used` nor current.
  void keep_only(const std::set<std::string>& used);

 private:
  std::string folder_;
  std::string binary_;
  std::string version_;  ///< inode, size and time of what was copied last
  std::string copy_;
};

}  // namespace helio::provider::local
