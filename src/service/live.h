#pragma once
// What the store says about the pool right now, in the forms that resolving and sched/ take.

#include "sched/sched.h"
#include "service/resolve.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helio::service {

/// Flavors, images and hosts (as if empty): one that is kept until any of them changes. Any thread.
class LiveCatalog {
 public:
  /// All must outlive it. `has_package`: see Catalog.
  LiveCatalog(store::Store& store, const model::Settings& settings, std::function<bool(std::string_view)> has_package)
      : store_(store), settings_(settings), has_package_(std::move(has_package)) {}
  Result<std::shared_ptr<const Catalog>> get();

 private:
  Result<std::shared_ptr<const Catalog>> load(std::int64_t& revision);

  store::Store& store_;
  const model::Settings& settings_;
  const std::function<bool(std::string_view)> has_package_;
  std::mutex mutex_;
  std::shared_ptr<const Catalog> kept_;
  std::int64_t revision_ = -1;  ///< that kept_ is of
};

/// Hosts with what live nodes take from them, and all that wait for the pool: jobs, and clusters that grow. Jobs whose flavor is gone are
/// left out.
Result<sched::State> load_state(store::ReadTx& tx, const std::map<std::string, model::Flavor>& flavors);

/// Ids of jobs that have not ended and for which `uses` holds, at most ten, for messages.
Result<std::vector<std::string>> live_jobs(store::ReadTx& tx, const std::function<bool(const model::JobSpec&)>& uses);

}  // namespace helio::service
