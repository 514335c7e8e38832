#pragma once
// Reads that only list, and the wake-up of those who wait for a change. One read of the event log serves all who wait.

#include "base/executor.h"
#include "model/cluster.h"
#include "model/pool.h"
#include "service/caller.h"
#include "store/store.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace helio::service {

class Feed {
 public:
  /// `executor` runs the read that decides whom to wake; it blocks in the store. Both outlive the feed and its watches.
  Feed(store::Store& store, Executor& executor);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  [[nodiscard]] std::int64_t revision() const { return store_.revision(); }
  Result<std::vector<store::Event>> events(const store::EventQuery& query);
  Result<std::vector<model::Host>> hosts();
  /// Of jobs that `scope` knows of. `all`: those that are gone too.
  Result<std::vector<model::Node>> nodes(const model::Scope& scope, bool all);
  /// Audit of what opens a session in a node, and so changes no row.
  Result<void> note(const Caller& caller, const NodeId& node, std::string_view type, const std::string& message, Timestamp now);
  Result<std::int64_t> count_jobs(const std::vector<model::JobState>& states);

  class Watch {
   public:
    virtual ~Watch() = default;
  };
  /// Calls `wake` after every change that belongs to `job` (empty: after every change), from another thread, until the watch ends.
  /// What was changed before this returns is not told: read after it.
  std::unique_ptr<Watch> watch(const std::string& job, std::function<void()> wake);
  /// Timers of those who wait. Any thread.
  Executor& executor() { return executor_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  store::Store& store_;
  Executor& executor_;
  std::unique_ptr<store::Store::Subscription> subscription_;
};

}  // namespace helio::service
