#pragma once
// Invariant: replaying the event log gives the stored state. Used by tests, by the simulation after every step, and by `helio doctor`.

#include "store/store.h"

#include <map>
#include <span>
#include <string>
#include <utility>

namespace helio::store {

/// Rows by (kind, id). State, parent and workspace are computed from the document for the kinds of model/kinds.h.
using Replayed = std::map<std::pair<std::string, std::string>, Row>;

/// Applies events, in order of revision, to `rows`. Error: internal when an event cannot be applied.
Result<void> replay(std::span<const Event> events, Replayed& rows);
/// All events of the transaction's snapshot, from the oldest kept.
Result<Replayed> replay_all(ReadTx& tx);
/// Compares every stored row with its replayed one. Error: internal, naming the first that differs.
Result<void> check_replay(Store& store);

}  // namespace helio::store
