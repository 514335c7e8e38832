#pragma once
// The control loop: follows the store, runs the controllers over what changed until nothing changes any more, writes each step in one
// transaction under the lease, and asks the provider for what has been written. Idle, it only has one timer.
//
// A crash between any two steps is harmless: intent is written before the provider is asked, all calls are idempotent, and start()
// compares the store with what the provider knows.

#include "base/clock.h"
#include "base/executor.h"
#include "base/rng.h"
#include "base/sealer.h"
#include "control/assignment.h"
#include "model/home.h"
#include "model/settings.h"
#include "provider/provider.h"
#include "store/log_store.h"
#include "store/store.h"

#include <functional>
#include <memory>
#include <string>

namespace helio::control {

/// Everything the loop depends on; must outlive it.
struct Deps {
  store::Store& store;
  provider::Provider& provider;
  store::LogStore& logs;
  const Clock& clock;
  Executor& executor;  ///< runs all steps; may block on the store
  const Sealer& sealer;
  Rng& rng;
  const model::Settings& settings;
  const model::Home& home;
  store::Lease lease;
  std::string daemon_url;          ///< ws://127.0.0.1:port/agent/v1
  std::string interface;           ///< see AssignmentContext
  std::string url;                 ///< see AssignmentContext
  Executor* background = nullptr;  ///< for compressing and removing logs; null: `executor`
  /// Called on `executor` when a node is proven dead, or is about to be ended by force, while its folder is still there: takes over what
  /// its agent had not shipped (last status, rest of the logs). May write observations. Empty: nothing is taken over.
  std::function<void(const NodeId& node, const provider::NodePlan& plan)> salvage;
  /// Called once, on `executor`, when a newer lease was taken: this daemon must end.
  std::function<void()> lease_lost;
};

class Loop {
 public:
  explicit Loop(Deps deps);
  /// Stops; waits for a step that runs.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Loads the view, records hosts and what the provider knows, sweeps orphans, and runs the first steps before it returns. Call it
  /// before agents may connect: it marks them all as disconnected.
  Result<void> start();
  /// No step runs after it returns. Any thread but a step's.
  void stop();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace helio::control
