#pragma once
// Schema changes: numbered, forward only, each in its own transaction, recorded with the SHA-256 of its text. A text that was released
// never changes.

#include "base/clock.h"
#include "base/error.h"
#include "store/sql/sqlite/connection.h"

#include <span>
#include <string_view>

namespace helio::store::sqlite {

struct Migration {
  int version = 0;  ///< 1, 2, ... without gaps
  std::string_view name;
  std::string_view sql;
};

/// All that this program knows.
std::span<const Migration> migrations();
/// Applies what is missing. Errors: precondition_failed when the database has one that is not in `known`, or with another text.
Result<void> migrate(Connection& db, std::span<const Migration> known, Timestamp now);

}  // namespace helio::store::sqlite
