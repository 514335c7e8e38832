#pragma once
// For this folder's tests: a folder of their own, and rows without a struct behind them.

#include "store/store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <utility>

namespace helio::store::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "helio-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline Event event(std::string type = "test") {
  Event out;
  out.actor = "test";
  out.type = std::move(type);
  return out;
}

inline Row row(std::string id, std::string doc = "{}", std::string state = "") {
  Row out;
  out.kind = "thing";
  out.id = std::move(id);
  out.doc = std::move(doc);
  out.state = std::move(state);
  return out;
}

/// Stores over whatever revision is there.
inline Result<std::int64_t> upsert(WriteTx& tx, Row row, Event with = event()) {
  HELIO_TRY(found, tx.get_row(row.kind, row.id));
  if (found) row.revision = found->revision;
  return tx.put_row(std::move(row), std::move(with));
}
inline Result<void> put(Store& store, Row row, Event with = event()) {
  return store.write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(upsert(tx, row, with));
    return {};
  });
}

/// The document's text, or "absent".
inline std::string doc(Store& store, const std::string& id) {
  std::string out = "absent";
  const auto done = store.read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.get_row("thing", id));
    if (found) out = found->doc;
    return {};
  });
  return done ? out : done.error().text();
}

/// A failed Result shows its error; use as EXPECT_TRUE(ok(...)).
template <class T>
testing::AssertionResult ok(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().text();
}
/// The code of a failed Result; nullopt on success.
template <class T>
std::optional<ErrorCode> code(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code();
}

}  // namespace helio::store::test
