#pragma once
// The invariants of docs/design.md section 12, checked on what is stored and on what really happened. Reads only what changed.

#include "base/clock.h"
#include "model/gang.h"
#include "model/kinds.h"
#include "provider/fake/world.h"
#include "sim/daemon.h"
#include "store/replay.h"
#include "store/store.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace helio::sim {

class Checks {
 public:
  Checks(store::Store& store, provider::VirtualTime& time, provider::World& world, SimLogs& logs)
      : store_(store), time_(time), world_(world), logs_(logs), replay_(store) {}

  /// After a step. Breaches are collected.
  void after_step();
  /// Every few seconds: nothing stands still that could go on. `up_since`: how long a daemon has been there; empty: there is none.
  void progress(std::optional<MonoTime> up_since);
  /// When all is quiet: everything ended, nothing is left.
  void at_end(const std::set<JobId>& acknowledged);

  void breach(std::string what);
  [[nodiscard]] const std::vector<std::string>& breaches() const { return breaches_; }
  [[nodiscard]] bool all_over() const;
  [[nodiscard]] const std::map<JobId, model::Job>& jobs() const { return jobs_; }
  /// The last events, for people.
  [[nodiscard]] std::vector<std::string> story(std::size_t lines) const;

 private:
  Result<void> read_changes(store::ReadTx& tx);
  void look_at(const model::Job& job);
  void look_at(const model::Attempt& attempt);
  void look_at(const model::Cluster& cluster);
  void look_at(const model::Node& node);
  void check_ended(const model::Attempt& attempt);
  void check_pool();
  [[nodiscard]] bool fits_now(const model::Job& job) const;
  [[nodiscard]] bool waits_for_a_ready_cluster(const model::Job& job) const;
  void check_secrets();
  void check_replay();

  store::Store& store_;
  provider::VirtualTime& time_;
  provider::World& world_;
  SimLogs& logs_;
  store::ReplayChecker replay_;
  std::int64_t seen_ = 0;
  std::map<JobId, model::Job> jobs_;
  std::map<AttemptId, model::Attempt> attempts_;
  std::map<ClusterId, model::Cluster> clusters_;
  std::map<NodeId, model::Node> nodes_;
  std::map<JobId, MonoTime> could_start_since_;
  std::map<AttemptId, MonoTime> unnoticed_since_;
  std::vector<std::string> breaches_;
  std::vector<std::string> story_;
  std::size_t world_breaches_ = 0;
  std::int64_t changes_ = 0;
  MonoTime moment_;
  std::int64_t moment_revision_ = 0;
};

}  // namespace helio::sim
