#include "store/replay.h"

#include "base/clock.h"
#include "base/rng.h"
#include "store/sql/sqlite/sqlite_store.h"
#include "store/test_support.h"

#include <gtest/gtest.h>

namespace helio::store {
namespace {

using test::code;
using test::doc;
using test::event;
using test::ok;
using test::put;
using test::row;

class ReplayTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::unique_ptr<Store> store_ = *open_sqlite({.path = ":memory:", .clock = clock_, .inline_mode = true});

  std::size_t events() {
    std::size_t n = 0;
    EXPECT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
      HELIO_TRY(all, tx.events({.limit = 0}));
      n = all.size();
      return {};
    })));
    return n;
  }
  std::int64_t compact(Timestamp before) {
    std::int64_t gone = -1;
    EXPECT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
      HELIO_TRY(n, tx.compact(before));
      gone = n;
      return {};
    })));
    return gone;
  }
};

/// Small documents out of few names and values, so that members come, change type and go; nulls included.
json::Value random_value(Rng& rng, int depth) {
  switch (rng.below(depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return static_cast<std::int64_t>(rng.below(3));
    case 2:
      return "text";
    case 3:
      return rng.chance(0.5);
    case 4:
      return 0.5;
    case 5: {
      json::Array out;
      for (std::uint64_t i = rng.below(3); i > 0; --i) out.push_back(random_value(rng, depth - 1));
      return out;
    }
    default: {
      json::Object out;
      for (std::uint64_t i = rng.below(4); i > 0; --i)
        out[std::string(1, static_cast<char>('a' + rng.below(4)))] = random_value(rng, depth - 1);
      return out;
    }
  }
}

TEST_F(ReplayTest, TheLogGivesTheStoredStateAfterAnyOperations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    store_ = *open_sqlite({.path = ":memory:", .clock = clock_, .inline_mode = true});
    SeededRng rng(seed);
    ReplayChecker checker(*store_);
    for (int step = 0; step < 120; ++step) {
      clock_.advance(1s);
      const std::string id(1, static_cast<char>('a' + rng.below(5)));
      const auto done = store_->write([&](WriteTx& tx) -> Result<void> {
        if (rng.chance(0.15)) return tx.remove_row("thing", id, event());
        json::Object document;
        for (const char* name : {"p", "q"}) document[name] = random_value(rng, 3);
        HELIO_CHECK_OK(test::upsert(tx, row(id, json::dump(document))));
        if (rng.chance(0.1)) return fail(ErrorCode::cancelled, "rolled back");
        return {};
      });
      if (!done) {
        EXPECT_TRUE(code(done) == ErrorCode::cancelled || code(done) == ErrorCode::not_found) << done.error().text();
      }
      if (rng.chance(0.1)) compact(clock_.now() - Duration(std::chrono::seconds(rng.below(30))));
      ASSERT_TRUE(ok(checker.check()));
    }
    ASSERT_TRUE(ok(check_replay(*store_)));
    compact(clock_.now() + 1s);
    ASSERT_TRUE(ok(check_replay(*store_)));
  }
}

TEST_F(ReplayTest, CompactionKeepsOneSnapshotOfWhatLivesAndNothingOfWhatWent) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(ok(put(*store_, row("alive", fmt::format(R"({{"n":{}}})", i)), event(fmt::format("step{}", i)))));
    ASSERT_TRUE(ok(put(*store_, row("dead", fmt::format(R"({{"n":{}}})", i)))));
  }
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) { return tx.remove_row("thing", "dead", event()); })));
  clock_.advance(1h);
  const Timestamp cut = clock_.now();
  ASSERT_TRUE(ok(put(*store_, row("alive", R"({"n":9})"), event("late"))));
  EXPECT_EQ(compact(cut - 2h), 0) << "nothing is that old";
  EXPECT_EQ(events(), 12U);
  EXPECT_EQ(compact(cut), 10);
  EXPECT_EQ(compact(cut), 0);
  ASSERT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(all, tx.events({}));
    EXPECT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].type, "step4");
    EXPECT_EQ(json::dump(all[0].patch), R"({"n":4})");
    EXPECT_EQ(json::dump(all[1].patch), R"({"n":9})");
    // A watch from the time before is told to start over; one that had seen all of it goes on.
    EXPECT_EQ(code(tx.events({.since = 3})), ErrorCode::precondition_failed);
    EXPECT_TRUE(tx.events({.since = 3}).error().message().starts_with("resync"));
    EXPECT_EQ(tx.events({.since = 11})->size(), 1U);
    return {};
  })));
  EXPECT_EQ(doc(*store_, "alive"), R"({"n":9})");
  EXPECT_TRUE(ok(check_replay(*store_)));
}

TEST_F(ReplayTest, RevisionsGoOnAfterTheLastEventWent) {
  test::TempFolder folder;
  const SqliteOptions options{.path = folder / "store.db", .clock = clock_, .inline_mode = true};
  store_ = *open_sqlite(options);
  ASSERT_TRUE(ok(put(*store_, row("a"))));
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) { return tx.remove_row("thing", "a", event()); })));
  EXPECT_EQ(compact(clock_.now() + 1s), 2);
  EXPECT_EQ(events(), 0U);
  store_.reset();
  store_ = *open_sqlite(options);
  EXPECT_EQ(store_->revision(), 2);
  ASSERT_TRUE(ok(put(*store_, row("a"))));
  EXPECT_EQ(store_->revision(), 3);
  EXPECT_TRUE(ok(check_replay(*store_)));
}

TEST_F(ReplayTest, AColumnThatDoesNotFollowItsDocumentIsFound) {
  model::Job job;
  job.id = JobId("j-1");
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.put(job, event("job.submitted")); })));
  ASSERT_TRUE(ok(check_replay(*store_)));
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.get_row("job", "j-1"));
    found->state = "running";
    HELIO_CHECK_OK(tx.put_row(*found, event()));
    return {};
  })));
  const auto checked = check_replay(*store_);
  ASSERT_EQ(code(checked), ErrorCode::internal);
  EXPECT_EQ(checked.error().message(), "job 'j-1': stored state is running, replayed queued");
}

TEST_F(ReplayTest, ADroppedEventIsFound) {
  std::vector<Event> log;
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"n":1})"))));
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"n":2})"))));
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) { return tx.remove_row("thing", "a", event()); })));
  ASSERT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(all, tx.events({}));
    log = all;
    return {};
  })));
  Replayed rows;
  EXPECT_TRUE(ok(replay(log, rows)));
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(code(replay(std::span(log).subspan(2), rows)), ErrorCode::internal);
}

}  // namespace
}  // namespace helio::store
