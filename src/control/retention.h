#pragma once
// What is kept of ended jobs: logs by age and by a total budget, the oldest ended jobs first; sealed logs; the event log's age.

#include "base/clock.h"
#include "model/job.h"
#include "model/settings.h"
#include "store/log_store.h"
#include "store/store.h"

#include <functional>
#include <string>

namespace helio::control {

class Retention {
 public:
  Retention(store::Store& store, store::LogStore& logs, const model::Settings& settings)
      : store_(store), logs_(logs), settings_(settings) {}

  /// Compresses the logs of an attempt that has ended. Idempotent.
  Result<void> seal(const AttemptId& attempt);
  /// Seals what a crash left unsealed: looks at the newest ended attempts.
  Result<void> seal_leftovers();
  /// Removes logs that are over their age or over the budget. `in_use` says which jobs still have a cluster.
  Result<void> sweep(const store::Lease& lease, Timestamp now, const std::function<bool(const JobId&)>& in_use);
  /// Forgets events and idempotency keys over their age.
  Result<void> compact(const store::Lease& lease, Timestamp now);

 private:
  /// Calls `visit` for ended jobs whose logs may still be there, oldest first, until it says stop (true).
  Result<void> each_ended(const std::function<Result<bool>(const model::Job&)>& visit);
  Result<void> remove_logs(const store::Lease& lease, const model::Job& job, std::string why, Timestamp now);

  store::Store& store_;
  store::LogStore& logs_;
  const model::Settings& settings_;
};

}  // namespace helio::control
