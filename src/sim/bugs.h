#pragma once
// Bugs planted one at a time around the code under test: each must be noticed by the checks. None of them exists outside this folder.

#include "base/rng.h"
#include "store/store.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace helio::sim {

enum class Bug {
  none,
  drop_wakeup,       ///< the store's listeners miss changes
  double_submit,     ///< an unclear submission is repeated under another id
  skip_fence,        ///< a daemon that lost its lease may still write
  forget_port,       ///< ports in use are given again
  lose_ack,          ///< a report that was lost is taken for delivered
  stale_status,      ///< an old report replaces a newer one
  unreachable_dead,  ///< a lost connection is taken for a death
  early_proof,       ///< a node is called dead when it is told to end
  lose_stop,         ///< a stop is acknowledged and forgotten
  lose_submission,   ///< a submission is acknowledged and forgotten
  forget_orphan,     ///< the orphan sweep finds nothing
  forget_secret,     ///< secrets outlive their owner
  rewrite_terminal,  ///< a job that has ended changes its mind
  partial_gang,      ///< a gang is admitted without its last node
  free_retry,        ///< retries are not charged
  skip_salvage,      ///< what a dead agent had not shipped is thrown away
  double_capacity,   ///< hosts promise twice what they have
  cut_leash,         ///< an entrypoint in a long-lived cluster outlives its submitter
};

struct BugInfo {
  Bug bug;
  std::string_view name;
  std::string_view what;
};
const std::array<BugInfo, 18>& all_bugs();
std::optional<Bug> bug_by_name(std::string_view name);

/// Passes everything to `inner` but for the planted bug.
class BuggyStore final : public store::Store {
 public:
  BuggyStore(store::Store& inner, Bug bug, Rng& rng) : inner_(inner), bug_(bug), rng_(rng) {}

  Result<void> write(WriteFn fn) override;
  Result<void> write(const store::Lease& lease, WriteFn fn) override;
  Result<void> read(ReadFn fn) override { return inner_.read(std::move(fn)); }
  Result<store::Lease> take_lease(std::string_view holder) override { return inner_.take_lease(holder); }
  [[nodiscard]] std::int64_t revision() const override { return inner_.revision(); }
  [[nodiscard]] std::int64_t changed(std::string_view kind) const override { return inner_.changed(kind); }
  std::unique_ptr<Subscription> subscribe(Listener listener) override;
  /// The next write pretends to succeed (lose_stop, lose_submission).
  void lose_next() { lose_next_ = true; }

 private:
  WriteFn spoil(WriteFn fn);

  store::Store& inner_;
  Bug bug_;
  Rng& rng_;
  bool lose_next_ = false;
};

/// Notices writes under a lease that is not the newest any more and were let through.
class LeaseWitness final : public store::Store {
 public:
  LeaseWitness(store::Store& inner, std::int64_t& newest, std::function<void(std::string)> breach)
      : inner_(inner), newest_(newest), breach_(std::move(breach)) {}

  Result<void> write(WriteFn fn) override { return inner_.write(std::move(fn)); }
  Result<void> write(const store::Lease& lease, WriteFn fn) override;
  Result<void> read(ReadFn fn) override { return inner_.read(std::move(fn)); }
  Result<store::Lease> take_lease(std::string_view holder) override;
  [[nodiscard]] std::int64_t revision() const override { return inner_.revision(); }
  [[nodiscard]] std::int64_t changed(std::string_view kind) const override { return inner_.changed(kind); }
  std::unique_ptr<Subscription> subscribe(Listener listener) override { return inner_.subscribe(std::move(listener)); }

 private:
  store::Store& inner_;
  std::int64_t& newest_;
  std::function<void(std::string)> breach_;
};

}  // namespace helio::sim
