#pragma once
// Invariant: replaying the event log gives the stored state. Used by tests, by the simulation after every step, and by diagnosis.

#include "store/store.h"

#include <map>
#include <span>
#include <string>
#include <utility>

namespace helio::store {

struct ReplayedRow {
  json::Value doc;
  std::int64_t revision = 0;
  std::string workspace;
};
/// By (kind, id).
using Replayed = std::map<std::pair<std::string, std::string>, ReplayedRow>;

/// Applies events, in order of revision, to `rows`. Error: internal when one cannot be applied.
Result<void> replay(std::span<const Event> events, Replayed& rows);

/// Compares stored rows with replayed ones. Each check() reads only what was appended since the former one, so it may follow every write.
/// Single thread.
class ReplayChecker {
 public:
  explicit ReplayChecker(Store& store) : store_(store) {}
  /// Error: internal, naming the first row that differs, in its document, its revision or one of its columns.
  Result<void> check();

 private:
  Result<void> check_in(ReadTx& tx);

  Store& store_;
  Replayed rows_;
  std::int64_t seen_ = 0;
};

/// One full check, from the oldest kept event.
Result<void> check_replay(Store& store);

}  // namespace helio::store
