#pragma once
#include "base/units.h"

#include <cstdint>
#include <string>

namespace helio::daemon {

/// Of this process.
struct OwnUse {
  Bytes memory;  ///< resident
  std::int64_t threads = 0;
};
OwnUse own_use();

/// Interface over which the nodes of the local backend talk, to be named to NCCL and Gloo where they would have a choice; else empty.
std::string interface_of_nodes();

}  // namespace helio::daemon
