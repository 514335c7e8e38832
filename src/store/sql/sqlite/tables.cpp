#include "store/sql/sqlite/tables.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace helio::store::sqlite {
namespace {

constexpr std::string_view kJob = model::KindOf<model::Job>::name;
// A row that was never changed has no document of its own: it is that of the event which made it, so that a create writes it once.
constexpr std::string_view kDoc = "CASE doc WHEN '' THEN (SELECT patch FROM events WHERE events.revision = created_seq) ELSE doc END";
constexpr std::string_view kRowColumns = "kind, id, revision, workspace, state, parent";

Row row_of(const Statement& s) { return {s.text(0), s.text(1), s.integer(2), s.text(3), s.text(4), s.text(5), s.text(6)}; }

Result<std::int64_t> cursor_of(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < 0) {
    return fail(Error(ErrorCode::invalid_argument, "not a cursor of this list: '" + text + "'").at("$.cursor"));
  }
  return value;
}

/// "?, ?, ?"
std::string marks(std::size_t count) {
  std::string out = "?";
  for (std::size_t i = 1; i < count; ++i) out += ", ?";
  return out;
}

/// The conditions of a list. The terms with `<>` let SQLite use the partial indexes. A plus keeps it from the index on (kind, id), which
/// would have to sort: a page of a list that nothing narrows down comes out of the table in its own order.
std::string conditions(const ListQuery& query) {
  const bool by_workspace = !query.workspace.empty() && query.workspace != "default";
  const bool within_others = !query.within.empty() && std::ranges::find(query.within, "default") == query.within.end();
  const bool narrow = by_workspace || within_others || !query.parent.empty() || !query.states.empty() || query.limit == 0;
  std::string sql = narrow ? "kind = ?" : "+kind = ?";
  if (by_workspace) sql += " AND workspace = ? AND workspace <> '' AND workspace <> 'default'";
  if (!query.workspace.empty() && !by_workspace) sql += " AND +workspace = ?";
  if (!query.within.empty()) {
    sql += fmt::format(" AND {}workspace IN ({})", within_others ? "" : "+", marks(query.within.size()));
    if (within_others) sql += " AND workspace <> '' AND workspace <> 'default'";
  }
  if (!query.parent.empty()) sql += " AND parent = ? AND parent <> ''";
  if (!query.states.empty()) sql += fmt::format(" AND state <> '' AND state IN ({})", marks(query.states.size()));
  return sql;
}
void bind_conditions(Statement& s, std::string_view kind, const ListQuery& query) {
  s.bind(kind);
  if (!query.workspace.empty()) s.bind(query.workspace);
  for (const std::string& workspace : query.within) s.bind(workspace);
  if (!query.parent.empty()) s.bind(query.parent);
  for (const std::string& state : query.states) s.bind(state);
}

json::Value parsed_or_null(const Statement& s, int column, std::optional<Error>& error) {
  if (s.is_null(column)) return nullptr;
  auto value = json::parse(s.view(column));
  if (value) return std::move(*value);
  if (!error) error = Error(ErrorCode::internal, "store: damaged event: " + value.error().message());
  return nullptr;
}

Result<Event> event_of(const Statement& s, bool names_only) {
  std::optional<Error> error;
  Event event;
  event.revision = s.integer(0);
  event.at = {s.integer(1)};
  event.actor = s.text(2);
  event.type = s.text(3);
  event.message = s.text(4);
  event.kind = s.text(5);
  event.id = s.text(6);
  event.workspace = s.text(7);
  event.job = s.text(8);
  if (names_only) return event;
  event.patch = parsed_or_null(s, 9, error);
  event.whole = parsed_or_null(s, 10, error);
  event.data = parsed_or_null(s, 11, error);
  if (error) return fail(std::move(*error));
  return event;
}

Result<json::Value> parse_document(std::string_view text) {
  auto value = json::parse(text);
  if (!value) return fail(std::move(value).error().during("document"));
  if (!value->is_object()) return fail(ErrorCode::invalid_argument, "document: expected an object");
  return value;
}

}  // namespace

Result<std::optional<Row>> get_row(Connection& db, std::string_view kind, std::string_view id) {
  static const std::string sql = fmt::format("SELECT {}, {} FROM resources WHERE kind = ? AND id = ?", kRowColumns, kDoc);
  HELIO_TRY(s, db.prepare(sql));
  HELIO_TRY(found, s.bind(kind).bind(id).step());
  if (!found) return std::optional<Row>{};
  return std::optional<Row>(row_of(s));
}

Result<std::optional<std::string>> workspace_of(Connection& db, std::string_view kind, std::string_view id) {
  HELIO_TRY(s, db.prepare("SELECT workspace FROM resources WHERE kind = ? AND id = ?"));
  HELIO_TRY(found, s.bind(kind).bind(id).step());
  return found ? std::optional(s.text(0)) : std::nullopt;
}

Result<Page<Row>> list_rows(Connection& db, std::string_view kind, const ListQuery& query) {
  std::int64_t after = query.newest_first ? std::numeric_limits<std::int64_t>::max() : 0;
  if (!query.cursor.empty()) {
    HELIO_TRY(cursor, cursor_of(query.cursor));
    after = cursor;
  }
  const std::string tail =
      query.newest_first ? " AND created_seq < ? ORDER BY created_seq DESC" : " AND created_seq > ? ORDER BY created_seq";
  std::string sql = fmt::format("SELECT {}, {}, created_seq FROM resources WHERE ", kRowColumns, kDoc);
  if (query.states.size() > 1) {
    // Several states come out of the index one after the other: sort their keys, then read the documents of one page only. Left alone,
    // SQLite would rather walk through all rows of the kind in order.
    const std::string_view index =
        query.parent.empty() && query.workspace.empty() && query.within.empty() ? "INDEXED BY resources_state" : "";
    sql += fmt::format("created_seq IN (SELECT created_seq FROM resources {} WHERE {}{} LIMIT ?) ORDER BY created_seq{}", index,
                       conditions(query), tail, query.newest_first ? " DESC" : "");
  } else {
    sql += conditions(query) + tail + " LIMIT ?";
  }
  HELIO_TRY(s, db.prepare(sql));
  bind_conditions(s, kind, query);
  // One more than asked for says whether there is a next page.
  s.bind(after).bind(query.limit > 0 ? static_cast<std::int64_t>(query.limit) + 1 : std::int64_t{-1});

  Page<Row> page;
  std::int64_t last = 0;
  while (true) {
    HELIO_TRY(more, s.step());
    if (!more) return page;
    if (query.limit > 0 && page.items.size() == static_cast<std::size_t>(query.limit)) {
      page.next = std::to_string(last);
      return page;
    }
    page.items.push_back(row_of(s));
    last = s.integer(7);
  }
}

Result<std::int64_t> count_rows(Connection& db, std::string_view kind, const ListQuery& query) {
  HELIO_TRY(s, db.prepare("SELECT count(*) FROM resources WHERE " + conditions(query)));
  bind_conditions(s, kind, query);
  HELIO_CHECK_OK(s.step());
  return s.integer(0);
}

Result<std::vector<Event>> events(Connection& db, const EventQuery& query) {
  if (query.since > 0) {
    HELIO_TRY(floor, get_meta(db, meta::kEventsFloor));
    if (query.since < floor) {
      return fail(Error(ErrorCode::precondition_failed, fmt::format("resync: events up to {} have been folded", floor))
                      .with("oldest", std::to_string(floor)));
    }
  }
  std::string sql =
      "SELECT revision, at, actor, type, message, kind, id, workspace, job, patch, whole, data FROM events WHERE revision > ?";
  if (!query.job.empty()) sql += " AND job = ? AND job <> ''";
  // A job's own events are found by the index on their job, those of other resources by the one on (kind, id), which leaves them out.
  const bool own = query.kind == kJob && !query.id.empty() && query.job.empty();
  if (own) sql += " AND job = ? AND job <> ''";
  // The plus keeps SQLite from the index on (kind, id) where it could not serve the order: a watch reads a short range of revisions.
  if (!query.kind.empty()) sql += query.id.empty() ? " AND +kind = ?" : " AND kind = ?";
  if (!query.id.empty()) sql += " AND id = ?";
  if (!query.id.empty() && query.kind != kJob) sql += " AND kind <> 'job'";
  if (!query.within.empty()) {
    // Attempts, nodes and the like are of their job's workspace, and do not say so themselves.
    sql += fmt::format(
        " AND (+workspace IN ({0}) OR (+workspace = '' AND +job <> '' AND EXISTS (SELECT 1 FROM resources WHERE resources.kind = 'job' AND "
        "resources.id = events.job AND +resources.workspace IN ({0}))))",
        marks(query.within.size()));
  }
  sql += " ORDER BY revision LIMIT ?";
  HELIO_TRY(s, db.prepare(sql));
  s.bind(query.since);
  if (!query.job.empty()) s.bind(query.job);
  if (own) s.bind(query.id);
  if (!query.kind.empty()) s.bind(query.kind);
  if (!query.id.empty()) s.bind(query.id);
  for (int i = 0; i < 2; ++i) {
    for (const std::string& workspace : query.within) s.bind(workspace);
  }
  s.bind(query.limit > 0 ? query.limit : -1);

  std::vector<Event> out;
  while (true) {
    HELIO_TRY(more, s.step());
    if (!more) return out;
    HELIO_TRY(event, event_of(s, query.names_only));
    out.push_back(std::move(event));
  }
}

Result<std::int64_t> last_revision(Connection& db) {
  HELIO_TRY(s, db.prepare("SELECT max(ifnull((SELECT value FROM meta WHERE key = ?), 0), ifnull((SELECT max(revision) FROM events), 0))"));
  HELIO_CHECK_OK(s.bind(meta::kRevision).step());
  return s.integer(0);
}

Result<std::optional<std::string>> get_secret(Connection& db, std::string_view key) {
  HELIO_TRY(s, db.prepare("SELECT sealed FROM secrets WHERE key = ?"));
  HELIO_TRY(found, s.bind(key).step());
  if (!found) return std::optional<std::string>{};
  return std::optional<std::string>(s.text(0));
}

Result<std::optional<IdempotencyRecord>> get_idempotency(Connection& db, std::string_view principal, std::string_view route,
                                                         std::string_view key, Timestamp now) {
  HELIO_TRY(s, db.prepare("SELECT body_hash, status, response FROM idempotency WHERE principal = ? AND route = ? AND key = ? AND at > ?"));
  HELIO_TRY(found, s.bind(principal).bind(route).bind(key).bind((now - kIdempotencyKept).us).step());
  if (!found) return std::optional<IdempotencyRecord>{};
  return std::optional<IdempotencyRecord>(
      {std::string(principal), std::string(route), std::string(key), s.text(0), static_cast<int>(s.integer(1)), s.text(2)});
}

Result<std::int64_t> get_meta(Connection& db, std::string_view key) {
  HELIO_TRY(s, db.prepare("SELECT value FROM meta WHERE key = ?"));
  HELIO_TRY(found, s.bind(key).step());
  return found ? s.integer(0) : 0;
}
Result<void> set_meta(Connection& db, std::string_view key, std::int64_t value) {
  HELIO_TRY(s, db.prepare("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"));
  return s.bind(key).bind(value).run();
}
Result<void> set_meta(Connection& db, std::string_view key, std::string_view value) {
  HELIO_TRY(s, db.prepare("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"));
  return s.bind(key).bind(value).run();
}

Result<void> put_event(Connection& db, const Event& event, std::string_view patch) {
  HELIO_TRY(s,
            db.prepare("INSERT OR REPLACE INTO events (revision, at, actor, type, message, kind, id, workspace, job, patch, whole, data) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  s.bind(event.revision).bind(event.at.us).bind(event.actor).bind(event.type).bind(event.message).bind(event.kind).bind(event.id);
  s.bind(event.workspace).bind(event.job).bind(patch.empty() ? json::dump(event.patch) : std::string(patch));
  event.whole.is_null() ? s.bind_null() : s.bind(json::dump(event.whole));
  event.data.is_null() ? s.bind_null() : s.bind(json::dump(event.data));
  return s.run();
}

bool holds_null_member(const json::Value& doc) {
  // Members of objects inside arrays do not count: a patch replaces an array as one value.
  if (!doc.is_object()) return false;
  for (const auto& member : doc.get_object()) {
    if (member.value().is_null() || holds_null_member(member.value())) return true;
  }
  return false;
}

// --- writes ---------------------------------------------------------------------------------------------------------------------

Event SqliteWriteTx::completed(Event event, std::string_view kind, std::string_view id) {
  event.kind = kind;
  event.id = id;
  if (event.at.us == 0) event.at = clock_.now();
  if (kind == kJob && event.job.empty()) event.job = id;
  event.revision = ++revision_;
  if (!kinds_.contains(kind)) kinds_.emplace(kind);
  return event;
}

Result<std::int64_t> SqliteWriteTx::put_row(Row row, Event event) {
  if (row.kind.empty() || row.id.empty()) return fail(ErrorCode::invalid_argument, "a row needs a kind and an id");
  if (row.value.is_null()) {
    HELIO_TRY(parsed, parse_document(row.doc));
    row.value = std::move(parsed);
  } else if (row.doc.empty()) {
    row.doc = json::dump(row.value);
  }
  json::Value before;
  std::int64_t stored = 0;
  std::int64_t created_seq = 0;
  if (row.revision != 0) {  // of a new one the index on (kind, id) says whether it is new
    static const std::string sql = fmt::format("SELECT revision, created_seq, {} FROM resources WHERE kind = ? AND id = ?", kDoc);
    HELIO_TRY(s, db_.prepare(sql));
    HELIO_TRY(found, s.bind(row.kind).bind(row.id).step());
    if (found) {
      stored = s.integer(0);
      created_seq = s.integer(1);
      if (row.revision == stored) {
        HELIO_TRY(parsed, parse_document(s.view(2)));
        before = std::move(parsed);
      }
    }
  }
  if (row.revision != stored) {
    if (stored == 0) return fail(ErrorCode::conflict, "{} '{}' was removed", row.kind, row.id);
    return fail(ErrorCode::conflict, "{} '{}' was changed: revision {} is not {}", row.kind, row.id, row.revision, stored);
  }
  auto done = store_row(std::move(row), std::move(event), before, created_seq);
  // Nothing is half done when a row with this id was there already.
  if (!done && done.error().code() == ErrorCode::already_exists) return done;
  return guard(std::move(done));
}

Result<std::int64_t> SqliteWriteTx::store_row(Row row, Event event, const json::Value& before, std::int64_t created_seq) {
  Event full = completed(std::move(event), row.kind, row.id);
  if (full.workspace.empty()) full.workspace = row.workspace;
  const bool whole = holds_null_member(row.value);
  // The patch from nothing is the document itself.
  const std::string_view patch = created_seq == 0 && !whole ? std::string_view(row.doc) : std::string_view();
  if (patch.empty()) full.patch = json::merge_diff(before, row.value);
  if (whole) full.whole = row.value;
  if (created_seq == 0) {
    HELIO_TRY(s, db_.prepare("INSERT INTO resources (created_seq, kind, id, revision, workspace, state, parent, doc) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO NOTHING"));
    s.bind(full.revision)
        .bind(row.kind)
        .bind(row.id)
        .bind(full.revision)
        .bind(row.workspace)
        .bind(row.state)
        .bind(row.parent)
        .bind(patch.empty() ? std::string_view(row.doc) : std::string_view());
    HELIO_CHECK_OK(s.run());
    if (db_.changes() == 0) {
      --revision_;
      return fail(ErrorCode::already_exists, "{} '{}' exists", row.kind, row.id);
    }
  } else {
    HELIO_TRY(s, db_.prepare("UPDATE resources SET revision = ?, workspace = ?, state = ?, parent = ?, doc = ? WHERE created_seq = ?"));
    s.bind(full.revision).bind(row.workspace).bind(row.state).bind(row.parent).bind(row.doc).bind(created_seq);
    HELIO_CHECK_OK(s.run());
  }
  HELIO_CHECK_OK(put_event(db_, full, patch));
  return full.revision;
}

Result<void> SqliteWriteTx::remove_row(std::string_view kind, std::string_view id, Event event) {
  HELIO_TRY(row, sqlite::get_row(db_, kind, id));
  if (!row) return fail(ErrorCode::not_found, "no {} '{}'", kind, id);
  Event full = completed(std::move(event), kind, id);
  if (full.workspace.empty()) full.workspace = row->workspace;
  full.patch = nullptr;
  full.whole = nullptr;
  return guard(delete_row(std::move(full)));
}

Result<void> SqliteWriteTx::delete_row(Event event) {
  HELIO_TRY(s, db_.prepare("DELETE FROM resources WHERE kind = ? AND id = ?"));
  HELIO_CHECK_OK(s.bind(event.kind).bind(event.id).run());
  return put_event(db_, event);
}

Result<void> SqliteWriteTx::put_secret(std::string_view key, std::string_view sealed) {
  HELIO_TRY(s, db_.prepare("INSERT INTO secrets (key, sealed) VALUES (?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed"));
  return guard(s.bind(key).bind_blob(sealed).run());
}

Result<void> SqliteWriteTx::remove_secrets(std::string_view prefix) {
  if (prefix.empty()) return fail(ErrorCode::invalid_argument, "an empty prefix would remove every secret");
  // 0xF4 0x8F 0xBF 0xBF is the greatest code point: no key that starts with the prefix sorts above it.
  HELIO_TRY(s, db_.prepare("DELETE FROM secrets WHERE key >= ? AND key < ?"));
  return guard(s.bind(prefix).bind(std::string(prefix) + "\xF4\x8F\xBF\xBF").run());
}

Result<void> SqliteWriteTx::put_idempotency(const IdempotencyRecord& record, Timestamp now) {
  HELIO_TRY(s, db_.prepare("INSERT OR REPLACE INTO idempotency (principal, route, key, at, body_hash, status, response) "
                           "VALUES (?, ?, ?, ?, ?, ?, ?)"));
  s.bind(record.principal)
      .bind(record.route)
      .bind(record.key)
      .bind(now.us)
      .bind(record.body_hash)
      .bind(record.status)
      .bind(record.response);
  return guard(s.run());
}

Result<std::int64_t> SqliteWriteTx::compact(Timestamp before) {
  HELIO_TRY(s, db_.prepare("DELETE FROM idempotency WHERE at <= ?"));
  HELIO_CHECK_OK(guard(s.bind((clock_.now() - kIdempotencyKept).us).run()));
  const std::int64_t keys = db_.changes();
  HELIO_TRY(gone, guard(compact_events(db_, before, revision_)));
  return keys + gone;
}

Result<std::int64_t> SqliteWriteTx::next_number(std::string_view counter) {
  HELIO_TRY(s, db_.prepare("INSERT INTO counters (name, value) VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value"));
  HELIO_TRY(row, guard(s.bind(counter).step()));
  if (!row) return fail(ErrorCode::internal, "store: counter '{}' gave no number", counter);
  const std::int64_t number = s.integer(0);
  // RETURNING gives its row first and completes on the next step.
  HELIO_CHECK_OK(guard(s.run()));
  return number;
}

Result<void> SqliteWriteTx::check_lease(const Lease& lease) {
  HELIO_TRY(fence, get_meta(db_, meta::kFence));
  if (fence != lease.token) return fail(ErrorCode::precondition_failed, "lease lost: {} was given after {}", fence, lease.token);
  return {};
}

Result<Lease> SqliteWriteTx::take_lease(std::string_view holder) {
  HELIO_TRY(fence, get_meta(db_, meta::kFence));
  HELIO_CHECK_OK(guard(set_meta(db_, meta::kFence, fence + 1)));
  HELIO_CHECK_OK(guard(set_meta(db_, meta::kLeaseHolder, holder)));
  return Lease{fence + 1};
}

}  // namespace helio::store::sqlite
