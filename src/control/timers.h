#pragma once
// When each job is to be looked at again; the next one is found without a walk over all. Single thread.

#include "base/clock.h"
#include "base/ids.h"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace helio::control {

class Timers {
 public:
  /// In place of what was set for the job.
  void set(const JobId& job, MonoTime at) {
    erase(job);
    at_.emplace(job, at);
    order_.emplace(at, job);
  }
  void erase(const JobId& job) {
    const auto found = at_.find(job);
    if (found == at_.end()) return;
    order_.erase({found->second, job});
    at_.erase(found);
  }
  /// Those whose time has come. They stay until they are erased or set again.
  [[nodiscard]] std::vector<JobId> due(MonoTime now) const {
    std::vector<JobId> out;
    for (const auto& [at, job] : order_) {
      if (at > now) break;
      out.push_back(job);
    }
    return out;
  }
  [[nodiscard]] std::optional<MonoTime> next() const { return order_.empty() ? std::nullopt : std::optional(order_.begin()->first); }

 private:
  std::map<JobId, MonoTime> at_;
  std::set<std::pair<MonoTime, JobId>> order_;
};

}  // namespace helio::control
