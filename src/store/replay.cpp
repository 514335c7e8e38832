#include "store/replay.h"

#include "model/kinds.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace helio::store {
namespace {

struct Columns {
  std::string id, state, parent, workspace;
};

template <class T>
Result<Columns> columns_as(const json::Value& doc) {
  using Kind = model::KindOf<T>;
  HELIO_TRY(resource, json::decode<T>(doc, json::Unknown::ignore));
  return Columns{Kind::id(resource), Kind::state(resource), Kind::parent(resource), Kind::workspace(resource)};
}

using Decode = Result<Columns> (*)(const json::Value&);
template <class... T>
constexpr auto decoders() {
  return std::array{std::pair<std::string_view, Decode>{model::KindOf<T>::name, &columns_as<T>}...};
}
constexpr auto kDecoders =
    decoders<model::Job, model::Attempt, model::Cluster, model::Node, model::Flavor, model::Image, model::Host, model::Token>();

Decode decoder_of(std::string_view kind) {
  const auto* found = std::ranges::find(kDecoders, kind, [](const auto& entry) { return entry.first; });
  return found == kDecoders.end() ? nullptr : found->second;
}

std::unexpected<Error> differs(const std::pair<std::string, std::string>& key, std::string_view what, std::string_view stored,
                               std::string_view replayed) {
  return fail(ErrorCode::internal, "{} '{}': stored {} is {}, replayed {}", key.first, key.second, what, stored, replayed);
}

Result<void> compare(const std::pair<std::string, std::string>& key, const Row& stored, const ReplayedRow& replayed) {
  if (stored.revision != replayed.revision) {
    return differs(key, "revision", std::to_string(stored.revision), std::to_string(replayed.revision));
  }
  HELIO_TRY(doc, json::parse(stored.doc));
  if (doc != replayed.doc) return differs(key, "document", stored.doc, json::dump(replayed.doc));
  const Decode decode = decoder_of(key.first);
  if (decode == nullptr) return {};
  HELIO_TRY(columns, decode(replayed.doc));
  if (columns.id != key.second) return differs(key, "id", key.second, columns.id);
  if (columns.state != stored.state) return differs(key, "state", stored.state, columns.state);
  if (columns.parent != stored.parent) return differs(key, "parent", stored.parent, columns.parent);
  if (columns.workspace != stored.workspace) return differs(key, "workspace", stored.workspace, columns.workspace);
  return {};
}

}  // namespace

Result<void> replay(std::span<const Event> events, Replayed& rows) {
  for (const Event& event : events) {
    std::pair<std::string, std::string> key{event.kind, event.id};
    if (event.whole.is_null() && event.patch.is_null()) {
      if (rows.erase(key) == 0) {
        return fail(ErrorCode::internal, "event {} removes {} '{}', which is not there", event.revision, event.kind, event.id);
      }
      continue;
    }
    if (!event.whole.is_null() ? !event.whole.is_object() : !event.patch.is_object()) {
      return fail(ErrorCode::internal, "event {} of {} '{}' holds no document", event.revision, event.kind, event.id);
    }
    ReplayedRow& row = rows[std::move(key)];
    if (event.revision <= row.revision) {
      return fail(ErrorCode::internal, "event {} of {} '{}' comes after {}", event.revision, event.kind, event.id, row.revision);
    }
    if (!event.whole.is_null()) {
      row.doc = event.whole;
    } else {
      json::merge_apply(row.doc, event.patch);
    }
    row.revision = event.revision;
    row.workspace = event.workspace;
  }
  return {};
}

Result<void> ReplayChecker::check() {
  return store_.read([this](ReadTx& tx) { return check_in(tx); });
}

Result<void> ReplayChecker::check_in(ReadTx& tx) {
  EventQuery query;
  query.since = seen_;
  query.limit = 0;
  auto events = tx.events(query);
  if (!events && events.error().code() == ErrorCode::precondition_failed) {
    rows_.clear();
    query.since = 0;
    events = tx.events(query);
  }
  if (!events) return fail(std::move(events).error());
  HELIO_CHECK_OK(replay(*events, rows_));
  HELIO_TRY(revision, tx.revision());
  seen_ = revision;

  std::set<std::pair<std::string, std::string>> touched;
  for (const Event& event : *events) touched.emplace(event.kind, event.id);
  for (const auto& key : touched) {
    HELIO_TRY(stored, tx.get_row(key.first, key.second));
    const auto replayed = rows_.find(key);
    if (!stored && replayed == rows_.end()) continue;
    if (!stored) return differs(key, "row", "absent", json::dump(replayed->second.doc));
    if (replayed == rows_.end()) return differs(key, "row", stored->doc, "absent");
    HELIO_CHECK_OK(compare(key, *stored, replayed->second));
  }
  // Rows that no event speaks of.
  std::map<std::string, std::int64_t, std::less<>> counts;
  for (const auto& [name, decode] : kDecoders) counts.emplace(name, 0);
  for (const auto& [key, row] : rows_) ++counts[key.first];
  for (const auto& [kind, count] : counts) {
    HELIO_TRY(stored, tx.count_rows(kind, {}));
    if (stored != count) return fail(ErrorCode::internal, "{} rows of kind {} are stored, {} are replayed", stored, kind, count);
  }
  return {};
}

Result<void> check_replay(Store& store) { return ReplayChecker(store).check(); }

}  // namespace helio::store
