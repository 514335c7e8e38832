#pragma once
// What the store says about the pool right now, in the forms that resolving and sched/ take.

#include "sched/sched.h"
#include "service/resolve.h"
#include "store/store.h"

#include <functional>
#include <string>
#include <vector>

namespace helio::service {

/// Flavors, images and hosts (as if empty).
Result<Catalog> load_catalog(store::ReadTx& tx, const model::Settings& settings);

/// Hosts with what live nodes take from them, and every job that waits. Jobs whose flavor is gone are left out.
Result<sched::State> load_state(store::ReadTx& tx, const std::map<std::string, model::Flavor>& flavors);

/// Ids of jobs that have not ended and for which `uses` holds, at most ten, for messages.
Result<std::vector<std::string>> live_jobs(store::ReadTx& tx, const std::function<bool(const model::JobSpec&)>& uses);

}  // namespace helio::service
