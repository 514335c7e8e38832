#pragma once
// Persistence behind one interface. Every resource is a row (kind, id, revision, workspace, state, parent, JSON document); every change
// appends an event with its actor in the same transaction; the event log is the change feed and the audit trail. Revisions come from
// one global counter: a row's revision is that of its last event.
//
// write() runs a function in a transaction, several callers' functions sharing one fsync (group commit); when it returns success the
// change is durable. read() sees one consistent snapshot. Both block; call them from worker threads, never from an event loop.

#include "base/error.h"
#include "base/json/json.h"
#include "model/kinds.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::store {

struct Row {
  std::string kind;
  std::string id;
  std::int64_t revision = 0;  ///< 0: not stored yet
  std::string workspace;
  std::string state;
  std::string parent;
  std::string doc;    ///< JSON text of the struct, without its revision
  json::Value value;  ///< the same parsed, for put_row() by who has it so: then `doc` may be empty and is made from it
};

/// What happened. `type` is a stable name such as "job.submitted", "attempt.state"; message is for people.
struct Event {
  std::int64_t revision = 0;
  Timestamp at;
  std::string actor;  ///< principal, or "control", "agent", "provider"
  std::string type;
  std::string message;
  std::string kind;  ///< of the resource
  std::string id;
  std::string workspace;
  std::string job;    ///< the job that it belongs to, if any: "within job" queries
  json::Value patch;  ///< RFC 7396 from the former document to the new one; null = removed. Replaying all gives the stored state
  json::Value whole;  ///< the new document, only where a patch cannot say it (it holds null members); then it wins over `patch`
  json::Value data;   ///< facts for programs
};

struct ListQuery {
  std::string workspace;            ///< empty: all
  std::vector<std::string> states;  ///< empty: all
  std::string parent;               ///< empty: all
  bool newest_first = false;        ///< by creation
  std::string cursor;               ///< opaque, from the former page
  int limit = 0;                    ///< 0: no limit
  std::vector<std::string> within;  ///< only of these workspaces; empty: all
};

struct EventQuery {
  std::int64_t since = 0;  ///< events with a greater revision
  std::string job;
  std::string kind;
  std::string id;
  int limit = 1000;
  bool names_only = false;  ///< leave patch, whole and data out: enough to know what to read again
  /// Only what belongs to these workspaces, or to a job of them that is still there; empty: all.
  std::vector<std::string> within{};
};

template <class T>
struct Page {
  std::vector<T> items;
  std::string next;  ///< empty: this was the last
};

struct IdempotencyRecord {
  std::string principal, route, key;
  std::string body_hash;
  int status = 0;
  std::string response;
};

/// Reads of one snapshot.
class ReadTx {
 public:
  virtual ~ReadTx() = default;
  virtual Result<std::optional<Row>> get_row(std::string_view kind, std::string_view id) = 0;
  /// Of a row, whose document is not read: takes the same time whatever its size. Nothing: there is no such row.
  virtual Result<std::optional<std::string>> workspace_of(std::string_view kind, std::string_view id) = 0;
  virtual Result<Page<Row>> list_rows(std::string_view kind, const ListQuery& query) = 0;
  virtual Result<std::int64_t> count_rows(std::string_view kind, const ListQuery& query) = 0;
  /// In order of revision. Error: precondition_failed "resync" when `since` is older than the oldest kept event; 0 is never too old: it
  /// asks for all that is kept, from which every living row can be rebuilt.
  virtual Result<std::vector<Event>> events(const EventQuery& query) = 0;
  virtual Result<std::int64_t> revision() = 0;
  /// Sealed bytes by key ("job/<id>/env"); nullopt if absent.
  virtual Result<std::optional<std::string>> get_secret(std::string_view key) = 0;
  virtual Result<std::optional<IdempotencyRecord>> get_idempotency(std::string_view principal, std::string_view route,
                                                                   std::string_view key) = 0;

  template <class T>
  Result<T> get(const std::string& id);
  template <class T>
  Result<std::optional<T>> find(const std::string& id);
  template <class T>
  Result<Page<T>> list(const ListQuery& query = {});
};

class WriteTx : public ReadTx {
 public:
  /// Stores `row` if its revision is the stored one (0: must not exist), appends `event`, returns the new revision. Fills the event's
  /// kind, id, patch, and `at` and workspace where they are empty. Errors: already_exists, conflict, invalid_argument (document).
  virtual Result<std::int64_t> put_row(Row row, Event event) = 0;
  virtual Result<void> remove_row(std::string_view kind, std::string_view id, Event event) = 0;
  virtual Result<void> put_secret(std::string_view key, std::string_view sealed) = 0;
  /// Every secret whose key starts with `prefix`.
  virtual Result<void> remove_secrets(std::string_view prefix) = 0;
  virtual Result<void> put_idempotency(const IdempotencyRecord& record, Timestamp now) = 0;
  /// Housekeeping. Of each resource's events up to the last moment before `before`, none stay if it was removed by then; else they are
  /// folded into the last of them, which becomes a snapshot, so that replay still gives the stored state. Idempotency keys go after 24 h.
  /// Returns how many events and keys went; a large backlog takes several calls, until 0 comes back.
  virtual Result<std::int64_t> compact(Timestamp before) = 0;
  /// A number that grows by one with each call and is never given twice: cluster slots' and names' source. Durable with the transaction.
  virtual Result<std::int64_t> next_number(std::string_view counter) = 0;

  /// Stores a resource, sets its revision, and fills kind, id, workspace, patch of the event. `document`, if given, gets what shown() gives
  /// of the stored row.
  template <class T>
  Result<void> put(T& resource, Event event, std::string* document = nullptr);
  template <class T>
  Result<void> remove(const std::string& id, Event event);
};

/// Proof of leadership: only its holder's control writes are accepted.
struct Lease {
  std::int64_t token = 0;
};

class Store {
 public:
  using WriteFn = std::move_only_function<Result<void>(WriteTx&)>;
  using ReadFn = std::move_only_function<Result<void>(ReadTx&)>;

  virtual ~Store() = default;
  /// Runs `fn` once; nothing of it stays when it or the commit fails. Errors of fn come back unchanged; storage_full.
  virtual Result<void> write(WriteFn fn) = 0;
  /// As write, refused with precondition_failed "lease lost" when a newer lease was taken.
  virtual Result<void> write(const Lease& lease, WriteFn fn) = 0;
  virtual Result<void> read(ReadFn fn) = 0;
  /// A lease newer than all before. The caller must hold the data folder's lock (SQLite) or be elected (PostgreSQL).
  virtual Result<Lease> take_lease(std::string_view holder) = 0;
  /// Revision of the last commit. Any thread, cheap.
  [[nodiscard]] virtual std::int64_t revision() const = 0;
  /// Revision of the last commit that changed a resource of `kind`; while none has since this store was opened, the revision of then. What
  /// was read at this revision or later is still so: what caches go by. Any thread, cheap.
  [[nodiscard]] virtual std::int64_t changed(std::string_view kind) const = 0;

  using Listener = std::function<void(std::int64_t revision)>;
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  /// Calls `listener` after commits that appended events, on the thread of one of those who wrote: it must only post. Another's write may
  /// have returned by then, and revisions may come out of order. Ends with the returned object, which may outlive the store.
  virtual std::unique_ptr<Subscription> subscribe(Listener listener) = 0;
};

// --- typed access ---------------------------------------------------------------------------------------------------------------

/// The document with its revision as first member, as the API shows it.
inline std::string shown(std::int64_t revision, std::string_view doc) {
  return fmt::format("{{\"revision\":{}{}{}", revision, doc.size() > 2 ? "," : "", doc.substr(1));
}

template <class T>
Result<T> from_row(const Row& row) {
  HELIO_TRY(resource, json::parse_as<T>(row.doc, json::Unknown::ignore));
  resource.revision = row.revision;
  return std::move(resource);
}

template <class T>
Result<std::optional<T>> ReadTx::find(const std::string& id) {
  HELIO_TRY(row, get_row(model::KindOf<T>::name, id));
  if (!row) return std::optional<T>{};
  HELIO_TRY(resource, from_row<T>(*row));
  return std::optional<T>(std::move(resource));
}

template <class T>
Result<T> ReadTx::get(const std::string& id) {
  HELIO_TRY(found, find<T>(id));
  if (!found) return fail(ErrorCode::not_found, "no {} '{}'", model::KindOf<T>::name, id);
  return std::move(*found);
}

template <class T>
Result<Page<T>> ReadTx::list(const ListQuery& query) {
  HELIO_TRY(rows, list_rows(model::KindOf<T>::name, query));
  Page<T> page;
  page.next = std::move(rows.next);
  page.items.reserve(rows.items.size());
  for (const Row& row : rows.items) {
    HELIO_TRY(resource, from_row<T>(row));
    page.items.push_back(std::move(resource));
  }
  return page;
}

template <class T>
Result<void> WriteTx::put(T& resource, Event event, std::string* document) {
  using Kind = model::KindOf<T>;
  Row row;
  row.kind = Kind::name;
  row.id = Kind::id(resource);
  row.revision = resource.revision;
  row.workspace = Kind::workspace(resource);
  row.state = Kind::state(resource);
  row.parent = Kind::parent(resource);
  json::Value doc = json::encode(resource);
  doc.get_object().erase("revision");
  row.doc = json::dump(doc);
  row.value = std::move(doc);
  if (document != nullptr) *document = row.doc;
  event.kind = row.kind;
  event.id = row.id;
  if (!row.workspace.empty()) event.workspace = row.workspace;
  HELIO_TRY(revision, put_row(std::move(row), std::move(event)));
  resource.revision = revision;
  if (document != nullptr) *document = shown(revision, *document);
  return {};
}

template <class T>
Result<void> WriteTx::remove(const std::string& id, Event event) {
  event.kind = model::KindOf<T>::name;
  event.id = id;
  return remove_row(model::KindOf<T>::name, id, std::move(event));
}

/// One-line reads for callers that need a single resource or list.
template <class T>
Result<T> get(Store& store, const std::string& id) {
  std::optional<T> out;
  HELIO_CHECK_OK(store.read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.get<T>(id));
    out = std::move(found);
    return {};
  }));
  return std::move(*out);
}
template <class T>
Result<Page<T>> list(Store& store, const ListQuery& query = {}) {
  Page<T> out;
  HELIO_CHECK_OK(store.read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.list<T>(query));
    out = std::move(found);
    return {};
  }));
  return out;
}

}  // namespace helio::store
