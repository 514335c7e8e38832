#pragma once
// What the world holds against what the store knows.

#include "base/clock.h"
#include "provider/provider.h"
#include "store/store.h"

#include <vector>

namespace helio::control {

/// Lets the provider end and wipe everything that belongs to no live node. Refused when the lease is lost: another daemon's nodes are no
/// orphans.
Result<void> sweep_orphans(store::Store& store, const store::Lease& lease, provider::Provider& provider, const std::vector<NodeId>& live);

/// Stores the hosts that the provider offers; what an administrator decided about a host (its state) stays. Hosts that it does not
/// offer any more go offline.
Result<void> record_hosts(store::Store& store, const store::Lease& lease, provider::Provider& provider, Timestamp now);

}  // namespace helio::control
