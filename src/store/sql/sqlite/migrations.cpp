#include "store/sql/sqlite/migrations.h"

#include "base/hash.h"

#include <array>
#include <map>
#include <string>

namespace helio::store::sqlite {
namespace {

// created_seq is the revision of the row's first event: unique, so it serves as the table's key, and every index ends with it, which
// makes each of them list in order of creation.
constexpr std::string_view kInitial = R"sql(
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value
) WITHOUT ROWID;

CREATE TABLE resources (
  created_seq INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  state TEXT NOT NULL,
  parent TEXT NOT NULL,
  doc TEXT NOT NULL
);
CREATE UNIQUE INDEX resources_id ON resources (kind, id);
CREATE INDEX resources_kind ON resources (kind);
CREATE INDEX resources_state ON resources (kind, state) WHERE state <> '';
CREATE INDEX resources_parent ON resources (kind, parent) WHERE parent <> '';
CREATE INDEX resources_workspace ON resources (kind, workspace) WHERE workspace <> '';

CREATE TABLE events (
  revision INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  type TEXT NOT NULL,
  message TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  workspace TEXT NOT NULL,
  job TEXT NOT NULL,
  patch TEXT NOT NULL,
  whole TEXT,
  data TEXT
);
CREATE INDEX events_resource ON events (kind, id);
CREATE INDEX events_job ON events (job) WHERE job <> '';

CREATE TABLE secrets (
  key TEXT PRIMARY KEY,
  sealed BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE idempotency (
  principal TEXT NOT NULL,
  route TEXT NOT NULL,
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  body_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  response TEXT NOT NULL,
  PRIMARY KEY (principal, route, key)
);
CREATE INDEX idempotency_at ON idempotency (at);

CREATE TABLE counters (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
)sql";

// Each index is one more page in every commit. A page of a list without conditions walks the table in its own order, and the workspace
// that is the only one on most machines needs no index of its own (tables.cpp, conditions()).
constexpr std::string_view kFewerIndexes = R"sql(
DROP INDEX resources_kind;
DROP INDEX resources_workspace;
CREATE INDEX resources_workspace ON resources (kind, workspace) WHERE workspace <> '' AND workspace <> 'default';
)sql";

// A job's own events are found by the index on their job.
constexpr std::string_view kJobsEvents = R"sql(
UPDATE events SET job = id WHERE kind = 'job' AND job = '';
DROP INDEX events_resource;
CREATE INDEX events_resource ON events (kind, id) WHERE kind <> 'job';
)sql";

constexpr std::array kMigrations{Migration{1, "initial", kInitial}, Migration{2, "fewer indexes", kFewerIndexes},
                                 Migration{3, "jobs' events by job", kJobsEvents}};

Result<std::map<int, std::string>> applied_checksums(Connection& db) {
  std::map<int, std::string> out;
  HELIO_TRY(rows, db.prepare("SELECT version, checksum FROM migrations"));
  while (true) {
    HELIO_TRY(more, rows.step());
    if (!more) return out;
    out[static_cast<int>(rows.integer(0))] = rows.text(1);
  }
}

Result<void> apply(Connection& db, const Migration& migration, Timestamp now) {
  HELIO_CHECK_OK(db.run("BEGIN IMMEDIATE"));
  auto done = [&]() -> Result<void> {
    HELIO_CHECK_OK(db.script(std::string(migration.sql)));
    HELIO_TRY(record, db.prepare("INSERT INTO migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)"));
    HELIO_CHECK_OK(record.bind(migration.version).bind(migration.name).bind(sha256_hex(migration.sql)).bind(now.us).run());
    return {};
  }();
  if (done) done = db.run("COMMIT");
  if (!done) {
    db.rollback();
    return fail(std::move(done).error().during(fmt::format("migration {} ({})", migration.version, migration.name)));
  }
  return {};
}

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

Result<void> migrate(Connection& db, std::span<const Migration> known, Timestamp now) {
  HELIO_CHECK_OK(
      db.run("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at "
             "INTEGER NOT NULL)"));
  HELIO_TRY(applied, applied_checksums(db));
  // All are checked before any is applied, so that a database that is refused stays as it was.
  for (const Migration& migration : known) {
    const auto found = applied.find(migration.version);
    if (found != applied.end() && found->second != sha256_hex(migration.sql)) {
      return fail(ErrorCode::precondition_failed,
                  "the database was made with another text of migration {} ({}); use the heliostat that made it", migration.version,
                  migration.name);
    }
  }
  const int newest = known.empty() ? 0 : known.back().version;
  if (!applied.empty() && applied.rbegin()->first > newest) {
    return fail(ErrorCode::precondition_failed, "the database has schema {}, this heliostat knows {}: it was written by a newer version",
                applied.rbegin()->first, newest);
  }
  for (const Migration& migration : known) {
    if (!applied.contains(migration.version)) HELIO_CHECK_OK(apply(db, migration, now));
  }
  return {};
}

}  // namespace helio::store::sqlite
