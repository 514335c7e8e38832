#include "store/replay.h"
#include "store/sql/sqlite/tables.h"

#include <algorithm>
#include <utility>

namespace helio::store::sqlite {
namespace {

// Bounds the time that one call holds the writer: some 100 ms.
constexpr int kResourcesPerCall = 1000;

struct Target {
  std::string kind;
  std::string id;
  std::int64_t last = 0;  ///< revision of its last event that may be folded
};

/// Greatest revision such that no event up to it happened at `before` or later.
Result<std::int64_t> cut_at(Connection& db, Timestamp before, std::int64_t last) {
  HELIO_TRY(s, db.prepare("SELECT revision FROM events WHERE at >= ? ORDER BY revision LIMIT 1"));
  HELIO_TRY(found, s.bind(before.us).step());
  return found ? s.integer(0) - 1 : last;
}

/// Resources with something to fold: several events up to `cut`, or a last one that removed them.
Result<std::vector<Target>> targets(Connection& db, std::int64_t cut) {
  // A bare column beside max() has the value of the row that holds the maximum.
  HELIO_TRY(s, db.prepare("SELECT kind, id, max(revision), patch, whole FROM events WHERE revision <= ? GROUP BY kind, id "
                          "HAVING count(*) > 1 OR (patch = 'null' AND whole IS NULL) LIMIT ?"));
  s.bind(cut).bind(kResourcesPerCall);
  std::vector<Target> out;
  while (true) {
    HELIO_TRY(more, s.step());
    if (!more) return out;
    out.push_back({s.text(0), s.text(1), s.integer(2)});
  }
}

Result<std::int64_t> fold(Connection& db, const Target& target) {
  EventQuery query;
  query.kind = target.kind;
  query.id = target.id;
  query.limit = 0;
  HELIO_TRY(all, events(db, query));
  std::erase_if(all, [&](const Event& event) { return event.revision > target.last; });
  Replayed rows;
  HELIO_CHECK_OK(replay(all, rows));

  // By key: what they are has just been read.
  for (const Event& event : all) {
    HELIO_TRY(s, db.prepare("DELETE FROM events WHERE revision = ?"));
    HELIO_CHECK_OK(s.bind(event.revision).run());
  }
  auto gone = static_cast<std::int64_t>(all.size());
  const auto row = rows.find({target.kind, target.id});
  if (row == rows.end()) return gone;

  Event snapshot = std::move(all.back());
  snapshot.whole = holds_null_member(row->second.doc) ? row->second.doc : json::Value();
  snapshot.patch = std::move(row->second.doc);
  HELIO_CHECK_OK(put_event(db, snapshot));
  return gone - 1;
}

}  // namespace

Result<std::int64_t> compact_events(Connection& db, Timestamp before, std::int64_t last) {
  HELIO_TRY(cut, cut_at(db, before, last));
  HELIO_TRY(found, targets(db, cut));
  if (found.empty()) return 0;
  std::int64_t gone = 0;
  for (const Target& target : found) {
    HELIO_TRY(n, fold(db, target));
    gone += n;
  }
  // The counter must not go back when the last event went.
  HELIO_CHECK_OK(set_meta(db, meta::kRevision, last));
  HELIO_TRY(floor, get_meta(db, meta::kEventsFloor));
  HELIO_CHECK_OK(set_meta(db, meta::kEventsFloor, std::max(floor, cut)));
  return gone;
}

}  // namespace helio::store::sqlite
