#pragma once
// Use cases of jobs: validate, one transaction, append event. Authorisation is api/'s; by the time we are called the caller may act, and
// knows of the job.

#include "base/clock.h"
#include "base/rng.h"
#include "base/sealer.h"
#include "model/home.h"
#include "model/settings.h"
#include "sched/sched.h"
#include "service/caller.h"
#include "service/live.h"
#include "store/log_store.h"
#include "store/store.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

struct Scale {
  std::optional<std::string> group;  ///< of workers; may be left out where there is one
  std::int32_t count = 0;
};

/// Any thread.
class Jobs {
 public:
  /// `logs`: where remove() takes a job's logs from; without it they stay until their retention ends.
  Jobs(store::Store& store, const Sealer& sealer, const Clock& clock, Rng& rng, const model::Settings& settings, const model::Home& home,
       store::LogStore* logs = nullptr);

  /// Validates, fills defaults, seals secrets, stores job + event + idempotency key in one transaction.
  /// Errors: invalid_argument with the path of the field; at $.cluster not_found for one that is not there, and precondition_failed for one
  /// that has ended; resource_exhausted at $.workers[i].count when no host can ever hold the shape
  /// (args: largest); not_found for an image, a flavor, or a workspace that the caller does not know of; conflict for a reused idempotency
  /// key with another body. `document`, if given, gets what get_text() would give.
  Result<model::Job> submit(const Caller& caller, const model::JobSpec& spec, const Idempotency& idempotency,
                            std::string* document = nullptr);
  /// The same, and `also` in the transaction that stores the job: for what must exist with it or not at all. Its error is the submit's.
  using Also = std::function<Result<void>(store::WriteTx&, const model::Job&)>;
  Result<model::Job> submit_with(const Caller& caller, const model::JobSpec& spec, const Also& also);
  /// What submit() would do, with its errors; stores nothing and does not ask whether the packages that it names are here yet.
  Result<Preview> preview(const Caller& caller, const model::JobSpec& spec);
  /// Error: not_found for a job that `scope` does not know of, after the same look for one that is not there at all. Of the scope of all
  /// workspaces nothing is asked.
  Result<void> check_known(const model::Scope& scope, const JobId& id);
  Result<model::Job> get(const JobId& id);
  /// The stored document's JSON text with its revision as first member, without decoding it: the hot path of GET.
  Result<std::string> get_text(const JobId& id);
  Result<store::Page<model::Job>> list(const store::ListQuery& query);
  /// Asks to stop; a job that was asked before comes back unchanged. The job's controller does the rest: in every state bounded. Of a job
  /// that has ended, nodes kept for inspection are given back now.
  Result<model::Job> stop(const Caller& caller, const JobId& id, model::StopReason reason);
  /// A new job with the same spec (secrets included), checked against the pool of now.
  Result<model::Job> rerun(const Caller& caller, const JobId& id, const Idempotency& idempotency, std::string* document = nullptr);
  /// Removes an ended job with its attempts, secrets, logs and files; the events stay for the audit. Files go first, so a removal that was
  /// cut short is finished by repeating it. Error: precondition_failed while it or one of its nodes lives.
  Result<void> remove(const Caller& caller, const JobId& id);
  /// The job of the long-lived cluster that has, or had last, this name. Error: not_found, also where it is not in `scope`.
  Result<JobId> cluster(const model::Scope& scope, const std::string& workspace, const std::string& name);
  /// The long-lived clusters of a workspace (empty: of all in `scope`) by their names: those that live, or with `ended` the last of each
  /// name.
  Result<std::vector<model::Job>> clusters(const model::Scope& scope, const std::string& workspace, bool ended);
  /// Asks a long-lived cluster for another number of workers. The controller does the rest: more come when there is room for all of them;
  /// of fewer, those that came last leave when their work has ended. Errors: precondition_failed for what is no cluster, has ended, or has
  /// a Ray that cannot drain; invalid_argument at $.group and $.count; resource_exhausted at $.count (args: largest).
  Result<model::Job> scale(const Caller& caller, const JobId& id, const Scale& scale);
  /// Jobs of workspaces that the caller does not know of are counted, not named.
  Result<Explanation> explain(const Caller& caller, const JobId& id);
  Result<std::vector<model::Attempt>> attempts(const JobId& id);
  Result<std::vector<model::Node>> nodes(const JobId& id);

 private:
  /// Checks, completes and stores a spec whose secrets are in clear.
  Result<model::Job> create(const Caller& caller, const model::JobSpec& spec, const Idempotency& idempotency,
                            const std::optional<JobId>& rerun_of, std::string* document, const Also& also = {});
  void seal_secrets(model::JobSpec& spec, const JobId& job, std::vector<std::pair<std::string, std::string>>& sealed) const;
  Result<void> release_retained(const Caller& caller, const model::Job& job);
  Result<model::JobSpec> spec_with_secrets(const JobId& id);
  Result<std::optional<model::Job>> cluster_for(const model::JobSpec& spec);

  store::Store& store_;
  const Sealer& sealer_;
  const Clock& clock_;
  Rng& rng_;
  const model::Settings& settings_;
  const model::Home& home_;
  store::LogStore* logs_;
  LiveCatalog catalog_;
};

/// The job of the long-lived cluster that a spec names to run in; empty when it names none. Errors at $.cluster: not_found, and
/// precondition_failed when it has ended or is about to.
Result<std::optional<model::Job>> cluster_of(store::ReadTx& tx, const model::JobSpec& spec);

/// Gives the name of a new long-lived cluster to it. Error: conflict at $.name while another one lives that has it.
Result<void> take_cluster_name(store::WriteTx& tx, const model::Job& job, store::Event event);

}  // namespace helio::service
