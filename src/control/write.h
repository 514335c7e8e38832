#pragma once
// From a transaction as data to the store.

#include "control/draft.h"
#include "store/store.h"

namespace helio::control {

/// All of it or nothing. Errors: conflict when a row has changed since it was read; precondition_failed when the lease is lost.
Result<void> write(store::Store& store, const store::Lease& lease, const Transaction& transaction, Timestamp now);
/// True for the error of a write under a lease that is no longer the newest.
bool is_lease_lost(const Error& error);

}  // namespace helio::control
