#include "control/loop.h"

#include "base/check.h"
#include "base/log.h"
#include "control/controllers.h"
#include "control/orphans.h"
#include "control/retention.h"
#include "control/scheduling.h"
#include "control/timers.h"
#include "control/write.h"
#include "store/observations.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

namespace helio::control {
namespace {

constexpr int kRounds = 100;          ///< of one run; a run that needs more goes on in the next
constexpr Duration kAfterError = 1s;  ///< before a step that failed is tried again
constexpr Duration kGather = 4ms;     ///< between two runs: a burst of commits is looked at together, one after quiet at once
constexpr Duration kHousekeeping = 60s;
constexpr int kCompactEvery = 60;  ///< in housekeepings
const provider::Grace kGrace{};

}  // namespace

class Loop::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(Deps deps)
      : d_(std::move(deps)),
        scheduling_(d_.provider, d_.sealer, d_.rng),
        retention_(d_.store, d_.logs, d_.settings),
        context_{d_.sealer, d_.settings, d_.home, d_.interface, d_.url} {}

  Result<void> start();
  void stop();

 private:
  void wake();
  void post(std::move_only_function<void(Impl&)> task);
  void run();
  bool round();
  void step(const JobId& id);
  void schedule();
  void admit_guest(const JobId& id, const Aggregate& guest);
  void execute(const Call& call);
  void ensure(const NodeId& node);
  void remove(const NodeId& node);
  void salvage(const NodeId& node);
  void record(const NodeId& node, const model::ProviderFact& fact);
  void after_commit(const Draft& draft);
  void arm();
  void housekeeping();
  void arm_housekeeping();
  Result<void> reconcile();
  /// False when the step has to be repeated; says so to the timers.
  bool commit(const Transaction& transaction, const JobId& job);
  void lose_lease();
  void retry_later(const JobId& job);
  [[nodiscard]] Moment moment() const { return {d_.clock.now(), d_.clock.mono()}; }

  Deps d_;
  View view_;
  Deadlines deadlines_;
  Scheduling scheduling_;
  Retention retention_;
  AssignmentContext context_;
  std::map<NodeId, NodeMemory> memory_;
  std::set<JobId> dirty_;
  bool scheduling_due_ = false;
  std::optional<View::QueueKey> blocked_;  ///< by the last decision: only what changes up to here asks for another
  Timers timers_;
  std::optional<MonoTime> scheduling_at_;
  std::optional<MonoTime> armed_at_;
  Executor::TimerId timer_ = 0;
  std::optional<Executor::TimerId> housekeeping_timer_;
  int housekeepings_ = 0;

  std::mutex mutex_;  ///< held by every step, so that stop() can wait for it
  bool stopped_ = false;
  std::atomic<bool> posted_ = false;
  std::atomic<MonoTime> ran_{MonoTime{}};  ///< end of the last run
  std::unique_ptr<store::Store::Subscription> subscription_;
};

// --- running --------------------------------------------------------------------------------------------------------------------

void Loop::Impl::post(std::move_only_function<void(Impl&)> task) {
  d_.executor.post([weak = weak_from_this(), task = std::move(task)]() mutable {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (!self->stopped_) task(*self);
  });
}

void Loop::Impl::wake() {
  if (posted_.exchange(true)) return;
  const Duration since = d_.clock.mono() - ran_.load();
  if (since >= kGather) return post([](Impl& self) { self.run(); });
  d_.executor.after(kGather - since, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (!self->stopped_) self->run();
  });
}

void Loop::Impl::run() {
  posted_ = false;
  for (int i = 0; i < kRounds; ++i) {
    if (stopped_) return;
    if (!round()) {
      arm();
      ran_ = d_.clock.mono();
      return;
    }
  }
  wake();  // others get their turn on the executor
}

bool Loop::Impl::round() {
  auto changes = view_.refresh(d_.store);
  if (!changes) {
    log::error("control cannot read the store: {}", changes.error().text());
    scheduling_at_ = d_.clock.mono() + kAfterError;
    return false;
  }
  dirty_.insert(changes->jobs.begin(), changes->jobs.end());
  scheduling_due_ |= changes->pool || (changes->queue && (!blocked_ || *changes->queue <= *blocked_));
  const MonoTime now = d_.clock.mono();
  for (const JobId& job : timers_.due(now)) dirty_.insert(job);
  if (scheduling_at_ && *scheduling_at_ <= now) {
    scheduling_at_.reset();
    scheduling_due_ = true;
  }
  if (dirty_.empty() && !scheduling_due_) return false;
  for (const JobId& job : std::exchange(dirty_, {})) {
    if (stopped_) return false;
    step(job);
  }
  // Whatever the steps above wrote is seen by the next round; deciding on it then costs less than deciding twice.
  if (dirty_.empty() && scheduling_due_ && d_.store.revision() == view_.revision()) schedule();
  return true;
}

void Loop::Impl::step(const JobId& id) {
  timers_.erase(id);
  const Aggregate* aggregate = view_.find(id);
  if (aggregate == nullptr) {
    deadlines_.forget(id.value);
    return;
  }
  Draft draft(*aggregate, id, moment(), deadlines_, memory_);
  draft.expects_guests = view_.expects_guests(id);
  draft.has_guests = view_.has_guests(id);
  if (aggregate->job && aggregate->job->guest_of) draft.host = view_.find(*aggregate->job->guest_of);
  step_nodes(draft);
  step_resize(draft);
  step_attempt(draft);
  step_cluster(draft);
  step_job(draft);
  if (draft.wake()) timers_.set(id, d_.clock.mono() + *draft.wake());
  const Transaction transaction = draft.transaction();
  if (!transaction.empty()) {
    if (!commit(transaction, id)) return;
    after_commit(draft);
  }
  for (const Call& call : draft.calls) execute(call);
  if (transaction.empty()) admit_guest(id, *aggregate);
}

void Loop::Impl::admit_guest(const JobId& id, const Aggregate& guest) {
  const bool waits = guest.job && guest.job->guest_of && guest.job->state == model::JobState::queued &&
                     guest.job->stop == model::StopReason::none && !guest.attempt && !guest.cluster;
  if (!waits) return;
  if (d_.store.revision() != view_.revision()) {
    dirty_.insert(id);  // ports may have been given since
    return;
  }
  auto admission = scheduling_.step_guest(view_, guest, d_.clock.now());
  if (!admission) {
    log::warn("{} waits: {}", id.value, admission.error().message());
    return retry_later(id);
  }
  if (!*admission || !commit((*admission)->transaction, id)) return;
  for (const Call& call : (*admission)->calls) execute(call);
}

void Loop::Impl::after_commit(const Draft& draft) {
  for (const auto& node : draft.nodes) {
    if (node->state == model::NodeState::gone) memory_.erase(node->id);
  }
  if (!draft.cluster || draft.cluster->value.state != model::ClusterState::gone) return;
  Executor& background = d_.background != nullptr ? *d_.background : d_.executor;
  background.post([weak = weak_from_this(), attempt = draft.cluster->value.attempt] {
    const auto self = weak.lock();
    if (!self) return;
    if (auto sealed = self->retention_.seal(attempt); !sealed) log::warn("sealing logs of {}: {}", attempt.value, sealed.error().text());
  });
}

bool Loop::Impl::commit(const Transaction& transaction, const JobId& job) {
  auto written = write(d_.store, d_.lease, transaction, d_.clock.now());
  if (written) return true;
  const Error& error = written.error();
  if (is_lease_lost(error)) {
    lose_lease();
  } else if (error.code() == ErrorCode::conflict || error.code() == ErrorCode::already_exists) {
    dirty_.insert(job);  // an observation came in between: look again
  } else {
    log::error("control cannot write about {}: {}", job.value, error.text());
    retry_later(job);
  }
  return false;
}

void Loop::Impl::retry_later(const JobId& job) { timers_.set(job, d_.clock.mono() + kAfterError); }

void Loop::Impl::lose_lease() {
  if (stopped_) return;
  stopped_ = true;
  log::error("another daemon has taken over: this one stops controlling");
  if (d_.lease_lost) d_.lease_lost();
}

void Loop::Impl::schedule() {
  scheduling_due_ = false;
  SchedulingOutcome outcome = scheduling_.step(view_, d_.clock.now());
  blocked_ = outcome.blocked;
  if (outcome.again) scheduling_at_ = d_.clock.mono() + *outcome.again;
  const auto failed = [&] {
    if (!scheduling_at_) scheduling_at_ = d_.clock.mono() + kAfterError;
  };
  for (const Admission& admission : outcome.admissions) {
    if (stopped_) return;
    if (!commit(admission.transaction, admission.calls.front().job)) {
      // Later ones were decided on top of this one.
      if (dirty_.empty()) failed();
      scheduling_due_ = !dirty_.empty();
      return;
    }
    for (const Call& call : admission.calls) execute(call);
  }
  for (const Transaction& reason : outcome.reasons) {
    if (stopped_) return;
    // Said again at the next decision; a conflict brings that about by itself.
    if (auto written = write(d_.store, d_.lease, reason, d_.clock.now()); !written && is_lease_lost(written.error())) return lose_lease();
  }
}

// --- the provider ---------------------------------------------------------------------------------------------------------------

void Loop::Impl::execute(const Call& call) {
  switch (call.kind) {
    case Call::Kind::ensure:
      ensure(call.node);
      break;
    case Call::Kind::end:
      salvage(call.node);
      memory_[call.node].removed_at = d_.clock.mono();
      remove(call.node);
      break;
    case Call::Kind::wipe:
      remove(call.node);
      break;
    case Call::Kind::salvage:
      salvage(call.node);
      memory_[call.node].salvaged = true;
      dirty_.insert(call.job);
      break;
  }
}

void Loop::Impl::remove(const NodeId& node) {
  if (auto removed = d_.provider.remove(node, kGrace); !removed) log::warn("removing node {}: {}", node.value, removed.error().text());
}

void Loop::Impl::ensure(const NodeId& node) {
  memory_[node].ensured = true;
  model::ProviderFact failure;
  failure.state = model::ProviderState::unknown;
  failure.cause = model::cause::kProviderFailed;
  failure.at = d_.clock.now();
  auto spec = build_node_spec(d_.store, context_, node, d_.daemon_url);
  if (!spec) {
    if (spec.error().code() == ErrorCode::not_found) failure.cause = model::cause::kImageBroken;
    failure.detail = spec.error().message();
  } else if (auto made = d_.provider.ensure(*spec); !made) {
    failure.detail = made.error().message();
  } else {
    return;
  }
  log::warn("making node {}: {}", node.value, failure.detail);
  record(node, failure);
}

void Loop::Impl::record(const NodeId& node, const model::ProviderFact& fact) {
  auto recorded = store::record_fact(d_.store, node, fact, d_.clock.now());
  if (recorded || recorded.error().code() == ErrorCode::not_found) return;
  // The provider says it once: it must not be lost to a full disk.
  log::error("recording what the provider says of {}: {}", node.value, recorded.error().text());
  d_.executor.after(kAfterError, [weak = weak_from_this(), node, fact] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (!self->stopped_) self->record(node, fact);
  });
}

void Loop::Impl::salvage(const NodeId& node) {
  if (!d_.salvage) return;
  std::optional<StoredPlan> plan;
  auto read = d_.store.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.find<StoredPlan>(node.value));
    plan = std::move(found);
    return {};
  });
  if (!read) log::error("reading the plan of {}: {}", node.value, read.error().text());
  if (plan) d_.salvage(node, from_stored(*plan));
}

// --- time -----------------------------------------------------------------------------------------------------------------------

void Loop::Impl::arm() {
  std::optional<MonoTime> next = scheduling_at_;
  if (const auto at = timers_.next(); at && (!next || *at < *next)) next = at;
  if (next == armed_at_) return;
  if (armed_at_) d_.executor.cancel(timer_);
  armed_at_ = next;
  if (!next) return;
  timer_ = d_.executor.after(std::max(Duration(0), *next - d_.clock.mono()), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (self->stopped_) return;
    self->armed_at_.reset();
    self->run();
  });
}

void Loop::Impl::arm_housekeeping() {
  housekeeping_timer_ = d_.executor.after(kHousekeeping, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (self->stopped_) return;
    self->housekeeping();
    self->arm_housekeeping();
  });
}

void Loop::Impl::housekeeping() {
  run();
  if (stopped_) return;
  if (auto swept = sweep_orphans(d_.store, d_.lease, d_.provider, view_.live_nodes()); !swept) {
    if (is_lease_lost(swept.error())) return lose_lease();
    log::warn("sweeping orphans: {}", swept.error().text());
  }
  const bool compact = ++housekeepings_ % kCompactEvery == 0;
  std::set<JobId> in_use;
  for (const auto& [job, aggregate] : view_.aggregates()) in_use.insert(job);
  Executor& background = d_.background != nullptr ? *d_.background : d_.executor;
  background.post([weak = weak_from_this(), compact, in_use = std::move(in_use)] {
    const auto self = weak.lock();
    if (!self) return;
    const Timestamp now = self->d_.clock.now();
    auto swept = self->retention_.sweep(self->d_.lease, now, [&](const JobId& job) { return in_use.contains(job); });
    if (!swept) log::warn("removing old logs: {}", swept.error().text());
    if (!compact) return;
    if (auto done = self->retention_.compact(self->d_.lease, now); !done) log::warn("forgetting old events: {}", done.error().text());
  });
}

// --- start and stop -------------------------------------------------------------------------------------------------------------

Result<void> Loop::Impl::reconcile() {
  const Timestamp now = d_.clock.now();
  HELIO_CHECK_OK(record_hosts(d_.store, d_.lease, d_.provider, now));
  HELIO_CHECK_OK(view_.refresh(d_.store));
  HELIO_TRY(known, d_.provider.list());
  std::set<NodeId> listed;
  for (const provider::NodeFact& fact : known) {
    listed.insert(fact.node);
    auto recorded = store::record_fact(d_.store, fact.node, fact.fact, now);
    if (!recorded && recorded.error().code() != ErrorCode::not_found) return fail(std::move(recorded).error());
  }
  const model::Cluster* newest = nullptr;
  for (const auto& [job, aggregate] : view_.aggregates()) {
    for (const auto& [index, node] : aggregate.nodes) {
      if (node.state == model::NodeState::gone) continue;
      if (node.connected) HELIO_CHECK_OK(store::record_connection(d_.store, node.id, false, now));
      // It ran, and the provider has lost sight of it: it must look for it, and say that there is nothing.
      if (node.fact.state == model::ProviderState::running && !listed.contains(node.id)) {
        HELIO_CHECK_OK(d_.provider.remove(node.id, kGrace));
      }
    }
    if (!aggregate.cluster || (newest != nullptr && newest->created >= aggregate.cluster->created)) continue;
    newest = &*aggregate.cluster;
  }
  if (newest != nullptr) scheduling_.set_last_slot(newest->slot);
  return sweep_orphans(d_.store, d_.lease, d_.provider, view_.live_nodes());
}

Result<void> Loop::Impl::start() {
  d_.provider.observe([weak = weak_from_this()](const NodeId& node, const model::ProviderFact& fact) {
    const auto self = weak.lock();
    if (!self) return;
    self->post([node, fact](Impl& me) { me.record(node, fact); });
  });
  {
    const std::lock_guard lock(mutex_);
    HELIO_CHECK_OK(reconcile());
    dirty_.clear();
    for (const auto& [job, aggregate] : view_.aggregates()) dirty_.insert(job);
    scheduling_due_ = true;
    subscription_ = d_.store.subscribe([weak = weak_from_this()](std::int64_t) {
      if (const auto self = weak.lock()) self->wake();
    });
    run();
    if (stopped_) return fail(ErrorCode::precondition_failed, "lease lost: another daemon has taken over");
    arm_housekeeping();
  }
  Executor& background = d_.background != nullptr ? *d_.background : d_.executor;
  background.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    if (auto sealed = self->retention_.seal_leftovers(); !sealed) log::warn("sealing logs: {}", sealed.error().text());
  });
  return {};
}

void Loop::Impl::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  subscription_.reset();
  if (armed_at_) d_.executor.cancel(timer_);
  if (housekeeping_timer_) d_.executor.cancel(*housekeeping_timer_);
}

Loop::Loop(Deps deps) : impl_(std::make_shared<Impl>(std::move(deps))) {}
Loop::~Loop() { impl_->stop(); }
Result<void> Loop::start() { return impl_->start(); }
void Loop::stop() { impl_->stop(); }

}  // namespace helio::control
