#pragma once
// The transactions' functions on the tables, on one connection inside one transaction that somebody else begins and ends.

#include "base/clock.h"
#include "store/sql/sqlite/connection.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace helio::store::sqlite {

inline constexpr Duration kIdempotencyKept = 24h;

Result<std::optional<Row>> get_row(Connection& db, std::string_view kind, std::string_view id);
Result<std::optional<std::string>> workspace_of(Connection& db, std::string_view kind, std::string_view id);
Result<Page<Row>> list_rows(Connection& db, std::string_view kind, const ListQuery& query);
Result<std::int64_t> count_rows(Connection& db, std::string_view kind, const ListQuery& query);
Result<std::vector<Event>> events(Connection& db, const EventQuery& query);
/// The last revision given, also when its event was removed.
Result<std::int64_t> last_revision(Connection& db);
Result<std::optional<std::string>> get_secret(Connection& db, std::string_view key);
Result<std::optional<IdempotencyRecord>> get_idempotency(Connection& db, std::string_view principal, std::string_view route,
                                                         std::string_view key, Timestamp now);
/// A number of the meta table; 0 if absent.
Result<std::int64_t> get_meta(Connection& db, std::string_view key);
Result<void> set_meta(Connection& db, std::string_view key, std::int64_t value);
Result<void> set_meta(Connection& db, std::string_view key, std::string_view value);
/// WriteTx::compact without the idempotency keys (compact.cpp). `last` is the last revision given.
Result<std::int64_t> compact_events(Connection& db, Timestamp before, std::int64_t last);
/// Inserts the event or, for a snapshot, replaces it. `patch`: the text of its patch, where it is known already.
Result<void> put_event(Connection& db, const Event& event, std::string_view patch = {});
/// A document that a merge patch cannot describe.
bool holds_null_member(const json::Value& doc);

namespace meta {
inline constexpr std::string_view kFence = "fence";               ///< token of the newest lease
inline constexpr std::string_view kLeaseHolder = "lease_holder";  ///< for people
inline constexpr std::string_view kRevision = "revision";         ///< at least the last one given, kept when events go
inline constexpr std::string_view kEventsFloor = "events_floor";  ///< watches from below it must resync
}  // namespace meta

/// The reads of both transactions.
template <class Base>
class TxReads : public Base {
 public:
  TxReads(Connection& db, const Clock& clock) : db_(db), clock_(clock) {}

  Result<std::optional<Row>> get_row(std::string_view kind, std::string_view id) override { return sqlite::get_row(db_, kind, id); }
  Result<std::optional<std::string>> workspace_of(std::string_view kind, std::string_view id) override {
    return sqlite::workspace_of(db_, kind, id);
  }
  Result<Page<Row>> list_rows(std::string_view kind, const ListQuery& query) override { return sqlite::list_rows(db_, kind, query); }
  Result<std::int64_t> count_rows(std::string_view kind, const ListQuery& query) override { return sqlite::count_rows(db_, kind, query); }
  Result<std::vector<Event>> events(const EventQuery& query) override { return sqlite::events(db_, query); }
  Result<std::int64_t> revision() override { return last_revision(db_); }
  Result<std::optional<std::string>> get_secret(std::string_view key) override { return sqlite::get_secret(db_, key); }
  Result<std::optional<IdempotencyRecord>> get_idempotency(std::string_view principal, std::string_view route,
                                                           std::string_view key) override {
    return sqlite::get_idempotency(db_, principal, route, key, clock_.now());
  }

 protected:
  Connection& db_;
  const Clock& clock_;
};

using SqliteReadTx = TxReads<ReadTx>;

class SqliteWriteTx final : public TxReads<WriteTx> {
 public:
  /// `revision`: the last one given; grows with each event, and is set back by the caller when the transaction fails. `kinds`: those
  /// changed are added.
  SqliteWriteTx(Connection& db, const Clock& clock, std::int64_t& revision, std::set<std::string, std::less<>>& kinds)
      : TxReads(db, clock), revision_(revision), kinds_(kinds) {}

  Result<std::int64_t> revision() override { return revision_; }
  Result<std::int64_t> put_row(Row row, Event event) override;
  Result<void> remove_row(std::string_view kind, std::string_view id, Event event) override;
  Result<void> put_secret(std::string_view key, std::string_view sealed) override;
  Result<void> remove_secrets(std::string_view prefix) override;
  Result<void> put_idempotency(const IdempotencyRecord& record, Timestamp now) override;
  Result<std::int64_t> compact(Timestamp before) override;
  Result<std::int64_t> next_number(std::string_view counter) override;

  Result<void> check_lease(const Lease& lease);
  Result<Lease> take_lease(std::string_view holder);
  /// The first error that left a change half done. The transaction must not be committed then, even if its function says success.
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }

 private:
  template <class T>
  Result<T> guard(Result<T> result) {
    if (!result && !broken_) broken_ = result.error();
    return result;
  }
  Result<std::int64_t> store_row(Row row, Event event, const json::Value& before, std::int64_t created_seq);
  Result<void> delete_row(Event event);
  Event completed(Event event, std::string_view kind, std::string_view id);

  std::int64_t& revision_;
  std::set<std::string, std::less<>>& kinds_;
  std::optional<Error> broken_;
};

}  // namespace helio::store::sqlite
