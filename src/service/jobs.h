#pragma once
// Use cases of jobs: validate, one transaction, append event. Authorisation is api/'s; by the time we are called the caller may act.

#include "base/clock.h"
#include "base/rng.h"
#include "base/sealer.h"
#include "model/home.h"
#include "model/settings.h"
#include "sched/sched.h"
#include "service/caller.h"
#include "store/store.h"

#include <string>
#include <vector>

namespace helio::service {

/// What a submit would do.
struct Preview {
  model::JobSpec spec;                 ///< resolved
  std::vector<model::Placement> gang;  ///< flavors and sizes of every node that counts
  model::Resources total;
  std::vector<std::string> warnings;
  bool starts_now = false;
  std::string would;  ///< for people: "would start now on host local" / why it would wait
};

struct Explanation {
  JobId job;
  model::JobState state = model::JobState::queued;
  std::string reason;
  std::optional<std::int32_t> position;  ///< in the queue, 1 = next
  std::vector<JobId> ahead;
  std::string constraint;
  std::string would_help;          ///< smallest change that would admit it
  std::vector<std::string> lines;  ///< the whole story for people, newest last
};

class Jobs {
 public:
  Jobs(store::Store& store, const Sealer& sealer, const Clock& clock, Rng& rng, const model::Settings& settings, const model::Home& home);

  /// Validates, fills defaults, seals secrets, stores job + event + idempotency key in one transaction.
  /// Errors: invalid_argument with the path of the field; resource_exhausted at $.workers[i].count when no host can ever hold the shape
  /// (args: largest); not_found for an image or flavor; conflict for a reused idempotency key with another body.
  Result<model::Job> submit(const Caller& caller, const model::JobSpec& spec, const Idempotency& idempotency);
  Result<Preview> preview(const Caller& caller, const model::JobSpec& spec);
  Result<model::Job> get(const JobId& id);
  /// The stored document's JSON text with revision, without decoding it: the hot path of GET.
  Result<std::string> get_text(const JobId& id);
  Result<store::Page<model::Job>> list(const store::ListQuery& query);
  /// Asks to stop; true for a job that had not ended. Idempotent; in every state bounded.
  Result<model::Job> stop(const Caller& caller, const JobId& id, model::StopReason reason);
  /// A new job with the same spec (secrets included).
  Result<model::Job> rerun(const Caller& caller, const JobId& id, const Idempotency& idempotency);
  /// Removes an ended job with its attempts, logs and files. Error: precondition_failed while it lives.
  Result<void> remove(const Caller& caller, const JobId& id);
  Result<Explanation> explain(const JobId& id);
  Result<std::vector<model::Attempt>> attempts(const JobId& id);
  Result<std::vector<model::Node>> nodes(const JobId& id);

 private:
  store::Store& store_;
  const Sealer& sealer_;
  const Clock& clock_;
  Rng& rng_;
  const model::Settings& settings_;
  const model::Home& home_;
};

}  // namespace helio::service
