#include "sim/bugs.h"

#include "model/kinds.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace helio::sim {
namespace {

constexpr std::array<BugInfo, 18> kBugs{{
    {Bug::drop_wakeup, "drop_wakeup", "the store's listeners miss changes"},
    {Bug::double_submit, "double_submit", "an unclear submission is repeated under another id"},
    {Bug::skip_fence, "skip_fence", "a daemon that lost its lease may still write"},
    {Bug::forget_port, "forget_port", "ports in use are given again"},
    {Bug::lose_ack, "lose_ack", "a report that was lost is taken for delivered"},
    {Bug::stale_status, "stale_status", "an old report replaces a newer one"},
    {Bug::unreachable_dead, "unreachable_dead", "a lost connection is taken for a death"},
    {Bug::early_proof, "early_proof", "a node is called dead when it is told to end"},
    {Bug::lose_stop, "lose_stop", "a stop is acknowledged and forgotten"},
    {Bug::lose_submission, "lose_submission", "a submission is acknowledged and forgotten"},
    {Bug::forget_orphan, "forget_orphan", "the orphan sweep finds nothing"},
    {Bug::forget_secret, "forget_secret", "secrets outlive their owner"},
    {Bug::rewrite_terminal, "rewrite_terminal", "a job that has ended changes its mind"},
    {Bug::partial_gang, "partial_gang", "a gang is admitted without its last node"},
    {Bug::free_retry, "free_retry", "retries are not charged"},
    {Bug::skip_salvage, "skip_salvage", "what a dead agent had not shipped is thrown away"},
    {Bug::double_capacity, "double_capacity", "hosts promise twice what they have"},
    {Bug::cut_leash, "cut_leash", "an entrypoint in a long-lived cluster outlives its submitter"},
}};

/// Success that must not stay: carries the outcome out of a transaction that is rolled back.
constexpr std::string_view kForgotten = "planted: forgotten";

class SpoiledTx final : public store::WriteTx {
 public:
  SpoiledTx(store::WriteTx& inner, Bug bug) : inner_(inner), bug_(bug) {}

  Result<std::optional<store::Row>> get_row(std::string_view kind, std::string_view id) override { return inner_.get_row(kind, id); }
  Result<store::Page<store::Row>> list_rows(std::string_view kind, const store::ListQuery& query) override {
    return inner_.list_rows(kind, query);
  }
  Result<std::int64_t> count_rows(std::string_view kind, const store::ListQuery& query) override { return inner_.count_rows(kind, query); }
  Result<std::vector<store::Event>> events(const store::EventQuery& query) override { return inner_.events(query); }
  Result<std::int64_t> revision() override { return inner_.revision(); }
  Result<std::optional<std::string>> workspace_of(std::string_view kind, std::string_view id) override {
    return inner_.workspace_of(kind, id);
  }
  Result<std::optional<std::string>> get_secret(std::string_view key) override { return inner_.get_secret(key); }
  Result<std::optional<store::IdempotencyRecord>> get_idempotency(std::string_view principal, std::string_view route,
                                                                  std::string_view key) override {
    return inner_.get_idempotency(principal, route, key);
  }
  Result<std::int64_t> put_row(store::Row row, store::Event event) override {
    if (bug_ == Bug::partial_gang && row.kind == "node" && row.revision == 0 && row.id.ends_with("-w2")) return inner_.revision();
    if (bug_ == Bug::free_retry && row.kind == "job") {
      auto job = json::decode<model::Job>(row.value, json::Unknown::ignore);
      if (job && !job->ledger.empty()) {
        job->ledger.clear();
        json::Value doc = json::encode(*job);
        doc.get_object().erase("revision");
        row.value = std::move(doc);
        row.doc.clear();
      }
    }
    return inner_.put_row(std::move(row), std::move(event));
  }
  Result<void> remove_row(std::string_view kind, std::string_view id, store::Event event) override {
    return inner_.remove_row(kind, id, std::move(event));
  }
  Result<void> put_secret(std::string_view key, std::string_view sealed) override { return inner_.put_secret(key, sealed); }
  Result<void> remove_secrets(std::string_view prefix) override {
    if (bug_ == Bug::forget_secret) return {};
    return inner_.remove_secrets(prefix);
  }
  Result<void> put_idempotency(const store::IdempotencyRecord& record, Timestamp now) override {
    return inner_.put_idempotency(record, now);
  }
  Result<std::int64_t> compact(Timestamp before) override { return inner_.compact(before); }
  Result<std::int64_t> next_number(std::string_view counter) override { return inner_.next_number(counter); }

 private:
  store::WriteTx& inner_;
  Bug bug_;
};

}  // namespace

const std::array<BugInfo, 18>& all_bugs() { return kBugs; }

std::optional<Bug> bug_by_name(std::string_view name) {
  const auto found = std::ranges::find(kBugs, name, &BugInfo::name);
  if (found == kBugs.end()) return std::nullopt;
  return found->bug;
}

store::Store::WriteFn BuggyStore::spoil(WriteFn fn) {
  const bool spoils = bug_ == Bug::partial_gang || bug_ == Bug::free_retry || bug_ == Bug::forget_secret;
  if (!spoils) return fn;
  return [fn = std::move(fn), bug = bug_](store::WriteTx& tx) mutable -> Result<void> {
    SpoiledTx spoiled(tx, bug);
    return fn(spoiled);
  };
}

Result<void> BuggyStore::write(WriteFn fn) {
  if (std::exchange(lose_next_, false)) {
    auto written = inner_.write([&](store::WriteTx& tx) -> Result<void> {
      HELIO_CHECK_OK(fn(tx));
      return fail(ErrorCode::cancelled, "{}", kForgotten);
    });
    if (!written && written.error().message() == kForgotten) return {};
    return written;
  }
  return inner_.write(spoil(std::move(fn)));
}

Result<void> BuggyStore::write(const store::Lease& lease, WriteFn fn) {
  if (bug_ == Bug::skip_fence) return inner_.write(std::move(fn));
  return inner_.write(lease, spoil(std::move(fn)));
}

std::unique_ptr<store::Store::Subscription> BuggyStore::subscribe(Listener listener) {
  if (bug_ != Bug::drop_wakeup) return inner_.subscribe(std::move(listener));
  return inner_.subscribe([this, listener = std::move(listener)](std::int64_t revision) {
    if (!rng_.chance(0.3)) listener(revision);
  });
}

Result<void> LeaseWitness::write(const store::Lease& lease, WriteFn fn) {
  const bool stale = lease.token < newest_;
  auto written = inner_.write(lease, std::move(fn));
  if (written && stale) breach_(fmt::format("invariant 2: a write under lease {} was let through, the newest is {}", lease.token, newest_));
  return written;
}

Result<store::Lease> LeaseWitness::take_lease(std::string_view holder) {
  auto lease = inner_.take_lease(holder);
  if (lease) newest_ = std::max(newest_, lease->token);
  return lease;
}

}  // namespace helio::sim
