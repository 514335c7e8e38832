#pragma once
// Where programs outside of a job's cluster reach it by Ray Client (ray://).

#include "base/sealer.h"
#include "store/store.h"

#include <cstdint>
#include <string>

namespace helio::service {

struct RayClientPlace {
  NodeId head;
  std::string address;  ///< where the head's client server listens, or will once somebody asks its agent for it
  std::uint16_t port = 0;
  std::string token;  ///< of the cluster; empty when its Ray has none
  std::string ray_version;
  std::string python_version;  ///< empty: the image is not registered any more
  std::string python;          ///< path of the image's interpreter, likewise
};

/// Any thread.
class RayClients {
 public:
  RayClients(store::Store& store, const Sealer& sealer) : store_(store), sealer_(sealer) {}

  /// Errors: not_found for a job, precondition_failed while its cluster is not up, or not any more.
  Result<RayClientPlace> find(const JobId& job);

 private:
  Result<RayClientPlace> read(store::ReadTx& tx, const JobId& id);

  store::Store& store_;
  const Sealer& sealer_;
};

}  // namespace helio::service
