// What every Store promises, on each way that SQLite is used.
#include "store/store.h"

#include "base/clock.h"
#include "store/sql/sqlite/sqlite_store.h"
#include "store/test_support.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace helio::store {
namespace {

using test::code;
using test::doc;
using test::event;
using test::ok;
using test::put;
using test::row;

enum class Mode { inline_memory, inline_file, memory, file };

class StoreTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override { reopen(); }
  void reopen() {
    store_.reset();
    const bool inline_mode = GetParam() == Mode::inline_memory || GetParam() == Mode::inline_file;
    const bool file = GetParam() == Mode::inline_file || GetParam() == Mode::file;
    auto opened = open_sqlite({.path = file ? folder_ / "store.db" : ":memory:", .clock = clock_, .inline_mode = inline_mode});
    ASSERT_TRUE(ok(opened));
    store_ = std::move(*opened);
  }
  std::vector<std::string> ids(const ListQuery& query, std::string* next = nullptr) {
    std::vector<std::string> out;
    EXPECT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
      HELIO_TRY(page, tx.list_rows("thing", query));
      for (const Row& item : page.items) out.push_back(item.id);
      if (next != nullptr) *next = page.next;
      return {};
    })));
    return out;
  }

  test::TempFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
};

std::string mode_name(const testing::TestParamInfo<Mode>& info) {
  switch (info.param) {
    case Mode::inline_memory:
      return "InlineMemory";
    case Mode::inline_file:
      return "InlineFile";
    case Mode::memory:
      return "Memory";
    case Mode::file:
      return "File";
  }
  return "Unknown";
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreTest, testing::Values(Mode::inline_memory, Mode::inline_file, Mode::memory, Mode::file), mode_name);

using Things = std::vector<std::string>;

TEST_P(StoreTest, RowsKeepTheirRevisionAndColumns) {
  EXPECT_EQ(store_->revision(), 0);
  Row stored = row("a", R"({"x":1})", "up");
  stored.workspace = "team";
  stored.parent = "p";
  ASSERT_TRUE(ok(put(*store_, stored)));
  EXPECT_EQ(store_->revision(), 1);
  ASSERT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.get_row("thing", "a"));
    if (!found) return fail(ErrorCode::not_found, "row");
    EXPECT_EQ(found->revision, 1);
    EXPECT_EQ(found->workspace, "team");
    EXPECT_EQ(found->state, "up");
    EXPECT_EQ(found->parent, "p");
    EXPECT_EQ(found->doc, R"({"x":1})");
    return {};
  })));
}

TEST_P(StoreTest, TypedResourcesComeBack) {
  model::Flavor flavor;
  flavor.name = FlavorId("small");
  flavor.resources.cpu = {1500};
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.put(flavor, event("flavor.added")); })));
  EXPECT_EQ(flavor.revision, 1);
  const auto found = get<model::Flavor>(*store_, "small");
  ASSERT_TRUE(ok(found));
  EXPECT_EQ(found->resources.cpu.n, 1500);
  EXPECT_EQ(found->revision, 1);
  EXPECT_EQ(code(get<model::Flavor>(*store_, "large")), ErrorCode::not_found);
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.remove<model::Flavor>("small", event("flavor.removed")); })));
  EXPECT_EQ(list<model::Flavor>(*store_)->items.size(), 0U);
}

TEST_P(StoreTest, AFailedFunctionLeavesNothing) {
  const auto failed = store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.put_row(row("a"), event()));
    HELIO_CHECK_OK(tx.put_secret("s", "x"));
    return fail(ErrorCode::cancelled, "changed my mind");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "cancelled: changed my mind");
  EXPECT_EQ(doc(*store_, "a"), "absent");
  EXPECT_EQ(store_->revision(), 0);
  ASSERT_TRUE(ok(put(*store_, row("b"))));
  EXPECT_EQ(store_->revision(), 1) << "revisions of what failed are not lost";
}

TEST_P(StoreTest, AnExceptionReachesTheCallerAndLeavesNothing) {
  EXPECT_THROW(static_cast<void>(store_->write([&](WriteTx& tx) -> Result<void> {
                 HELIO_CHECK_OK(tx.put_row(row("a"), event()));
                 throw std::runtime_error("bug");
               })),
               std::runtime_error);
  EXPECT_EQ(doc(*store_, "a"), "absent");
  EXPECT_TRUE(ok(put(*store_, row("a"))));
}

TEST_P(StoreTest, StaleWritersAreRefused) {
  ASSERT_TRUE(ok(put(*store_, row("a"))));
  auto write_with = [&](std::string id, std::int64_t revision) {
    return code(store_->write([&](WriteTx& tx) -> Result<void> {
      Row changed = row(std::move(id), R"({"x":2})");
      changed.revision = revision;
      HELIO_CHECK_OK(tx.put_row(changed, event()));
      return {};
    }));
  };
  EXPECT_EQ(write_with("a", 0), ErrorCode::already_exists);
  EXPECT_EQ(write_with("a", 7), ErrorCode::conflict);
  EXPECT_EQ(write_with("b", 1), ErrorCode::conflict) << "removed meanwhile";
  EXPECT_EQ(write_with("a", 1), std::nullopt);
  EXPECT_EQ(write_with("a", 1), ErrorCode::conflict);
  EXPECT_EQ(doc(*store_, "a"), R"({"x":2})");
}

TEST_P(StoreTest, ACreateOfWhatExistsChangesNothingAndTheRestGoesOn) {
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"x":1})"))));
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) -> Result<void> {
    EXPECT_EQ(code(tx.put_row(row("a", R"({"x":2})"), event())), ErrorCode::already_exists);
    EXPECT_EQ(*tx.put_row(row("b"), event()), 2) << "no revision is lost";
    return {};
  })));
  EXPECT_EQ(doc(*store_, "a"), R"({"x":1})");
  EXPECT_EQ(store_->revision(), 2);
  ASSERT_TRUE(ok(store_->read([](ReadTx& tx) -> Result<void> {
    EXPECT_EQ(tx.events({})->size(), 2U);
    return {};
  })));
}

TEST_P(StoreTest, EventsOfOneResourceAreFoundWhateverItIs) {
  model::Job job;
  job.id = JobId("j-1");
  model::Attempt attempt;
  attempt.id = AttemptId("j-1-1");
  attempt.job = job.id;
  Event of_job = event("attempt.created");
  of_job.job = "j-1";
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.put(job, event("job.submitted")));
    HELIO_CHECK_OK(tx.put(attempt, of_job));
    job.reason = "changed";
    return tx.put(job, event("job.changed"));
  })));
  ASSERT_TRUE(ok(store_->read([](ReadTx& tx) -> Result<void> {
    EXPECT_EQ(tx.events({.kind = "job", .id = "j-1"})->size(), 2U);
    EXPECT_EQ(tx.events({.kind = "attempt", .id = "j-1-1"})->size(), 1U);
    EXPECT_EQ(tx.events({.kind = "attempt", .id = "j-1"})->size(), 0U);
    EXPECT_EQ(tx.events({.job = "j-1"})->size(), 3U) << "a job's own events belong to it without saying so";
    EXPECT_EQ(tx.events({.job = "j-1", .kind = "job", .id = "j-1"})->size(), 2U);
    return {};
  })));
}

TEST_P(StoreTest, EventsOfAWorkspaceAreItsOwnAndThoseOfItsJobs) {
  const auto add = [&](std::string kind, std::string id, std::string workspace, std::string job) {
    Row item = row(std::move(id));
    item.kind = std::move(kind);
    item.workspace = std::move(workspace);
    Event with = event();
    with.job = std::move(job);
    ASSERT_TRUE(ok(put(*store_, item, with)));
  };
  add("job", "j-1", "w1", "");
  add("job", "j-2", "default", "");
  add("attempt", "j-1-1", "", "j-1");
  add("attempt", "j-2-1", "", "j-2");
  add("attempt", "j-3-1", "", "j-3");  // of a job that is not there
  add("package", "p", "w1", "");
  add("token", "t", "", "");
  const auto found = [&](EventQuery query) {
    Things out;
    EXPECT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
      HELIO_TRY(events, tx.events(query));
      for (const Event& each : events) out.push_back(each.id);
      return {};
    })));
    return out;
  };
  EXPECT_EQ(found({.within = {"w1"}}), (Things{"j-1", "j-1-1", "p"}));
  EXPECT_EQ(found({.within = {"default", "w3"}}), (Things{"j-2", "j-2-1"}));
  EXPECT_EQ(found({.within = {"w3"}}), (Things{}));
  EXPECT_EQ(found({.job = "j-1", .within = {"default"}}), (Things{}));
  EXPECT_EQ(found({.job = "j-1", .limit = 1, .within = {"w1"}}), (Things{"j-1"}));
  EXPECT_EQ(found({.since = 1, .kind = "attempt", .names_only = true, .within = {"w1"}}), (Things{"j-1-1"}));
  EXPECT_EQ(found({.kind = "attempt", .id = "j-2-1", .within = {"w1"}}), (Things{}));
  EXPECT_EQ(found({.kind = "job", .id = "j-2", .within = {"default"}}), (Things{"j-2"}));
  // What there was of a job that was removed is told by its own last word alone.
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.remove_row("job", "j-1", event()); })));
  EXPECT_EQ(found({.within = {"w1"}}), (Things{"j-1", "p", "j-1"}));
}

TEST_P(StoreTest, ACommitOfAnySizeIsTaken) {
  // Sizes around those at which the log's writes are cut into pieces.
  for (const int kib : {16, 60, 64, 124, 128, 132, 256, 1000, 3000}) {
    const std::string id = std::to_string(kib);
    const std::string large = fmt::format(R"({{"x":"{}"}})", std::string(static_cast<std::size_t>(kib) << 10U, 'x'));
    ASSERT_TRUE(ok(put(*store_, row(id, large)))) << kib;
    EXPECT_EQ(doc(*store_, id), large) << kib;
  }
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    for (int i = 0; i < 500; ++i) HELIO_CHECK_OK(tx.put_row(row(fmt::format("n{}", i), R"({"x":1})"), event()));
    return {};
  })));
  EXPECT_EQ(doc(*store_, "n499"), R"({"x":1})");
}

TEST_P(StoreTest, ARowThatWasNeverChangedReadsAsItWasWritten) {
  const std::string nulls = R"({"x":null,"y":{"z":1}})";
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"x":"é"})", "new"))));
  ASSERT_TRUE(ok(put(*store_, row("b", nulls, "new"))));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(doc(*store_, "a"), R"({"x":"é"})");
    EXPECT_EQ(doc(*store_, "b"), nulls);
    ASSERT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
      const auto page = tx.list_rows("thing", {.states = {"new", "old"}});
      EXPECT_EQ(page->items.size(), 2U);
      EXPECT_EQ(page->items[0].doc, R"({"x":"é"})");
      EXPECT_EQ(page->items[1].doc, nulls);
      return {};
    })));
    ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
      HELIO_TRY(gone, tx.compact(Timestamp{std::numeric_limits<std::int64_t>::max()}));
      EXPECT_EQ(gone, 0);
      return {};
    })));
  }
  Row changed = row("a", R"({"x":2})", "new");
  changed.revision = 1;
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.put_row(changed, event()));
    return {};
  })));
  EXPECT_EQ(doc(*store_, "a"), R"({"x":2})");
}

TEST_P(StoreTest, ADocumentThatCouldNotBeReadBackIsRefused) {
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  EXPECT_EQ(code(put(*store_, row("a", R"({"x":)" + deep + "}"))), ErrorCode::invalid_argument);
  EXPECT_EQ(code(put(*store_, row("a", "{"))), ErrorCode::invalid_argument);
  EXPECT_EQ(code(put(*store_, row("a", "3"))), ErrorCode::invalid_argument);
  EXPECT_EQ(code(put(*store_, row("", "{}"))), ErrorCode::invalid_argument);
}

TEST_P(StoreTest, ListsFilterAndCount) {
  auto add = [&](std::string id, std::string state, std::string workspace, std::string parent) {
    Row item = row(std::move(id), "{}", std::move(state));
    item.workspace = std::move(workspace);
    item.parent = std::move(parent);
    ASSERT_TRUE(ok(put(*store_, item)));
  };
  add("c", "up", "w1", "p1");
  add("b", "down", "w1", "p2");
  add("a", "up", "w2", "p1");
  add("d", "gone", "w2", "p1");
  EXPECT_EQ(ids({}), (Things{"c", "b", "a", "d"}));
  EXPECT_EQ(ids({.newest_first = true}), (Things{"d", "a", "b", "c"}));
  EXPECT_EQ(ids({.workspace = "w1"}), (Things{"c", "b"}));
  EXPECT_EQ(ids({.states = {"up"}}), (Things{"c", "a"}));
  EXPECT_EQ(ids({.states = {"gone", "down"}}), (Things{"b", "d"}));
  EXPECT_EQ(ids({.states = {"gone", "up"}, .parent = "p1", .newest_first = true, .limit = 2}), (Things{"d", "a"}));
  EXPECT_EQ(ids({.workspace = "w2", .states = {"up"}, .parent = "p1"}), (Things{"a"}));
  EXPECT_EQ(ids({.workspace = "other"}), (Things{}));
  add("e", "up", "default", "p1");
  add("f", "down", "", "p1");
  EXPECT_EQ(ids({.within = {"w2", "other"}}), (Things{"a", "d"}));
  EXPECT_EQ(ids({.within = {"w2", "default"}}), (Things{"a", "d", "e"}));
  EXPECT_EQ(ids({.states = {"gone", "up"}, .newest_first = true, .within = {"w2", "default"}}), (Things{"e", "d", "a"}));
  EXPECT_EQ(ids({.states = {"up"}, .parent = "p1", .within = {"w1"}}), (Things{"c"}));
  EXPECT_EQ(ids({.workspace = "w1", .within = {"w2", "default"}}), (Things{})) << "both must hold";
  EXPECT_EQ(ids({.workspace = "default", .within = {"default"}}), (Things{"e"}));
  ASSERT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
    EXPECT_EQ(tx.count_rows("thing", {}).value_or(-1), 6);
    EXPECT_EQ(tx.count_rows("thing", {.within = {"w2"}}).value_or(-1), 2);
    EXPECT_EQ(tx.workspace_of("thing", "a").value(), "w2");
    EXPECT_EQ(tx.workspace_of("thing", "f").value(), "");
    EXPECT_EQ(tx.workspace_of("thing", "none").value(), std::nullopt);
    EXPECT_EQ(tx.workspace_of("other", "a").value(), std::nullopt);
    EXPECT_EQ(tx.count_rows("thing", {.states = {"up", "down"}}).value_or(-1), 5);
    EXPECT_EQ(tx.count_rows("other", {}).value_or(-1), 0);
    return {};
  })));
}

TEST_P(StoreTest, PagesAreStableWhileRowsComeAndGo) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(ok(put(*store_, row(fmt::format("r{}", i), "{}", i % 2 == 0 ? "even" : "odd"))));
  for (const bool newest_first : {false, true}) {
    for (const Things& states : {Things{}, Things{"even", "odd"}}) {
      ListQuery query{.states = states, .newest_first = newest_first, .limit = 4};
      std::vector<std::string> all;
      int pages = 0;
      do {
        std::string next;
        for (std::string& id : ids(query, &next)) all.push_back(std::move(id));
        query.cursor = next;
        ++pages;
        // A change does not move a row, and a removed one that the cursor was on does not matter.
        ASSERT_TRUE(ok(put(*store_, row("r5", R"({"n":1})", "odd"))));
      } while (!query.cursor.empty());
      EXPECT_EQ(pages, 3);
      std::vector<std::string> expected;
      for (int i = 0; i < 10; ++i) expected.push_back(fmt::format("r{}", newest_first ? 9 - i : i));
      EXPECT_EQ(all, expected);
    }
  }
  std::string next;
  EXPECT_EQ(ids({.limit = 4}, &next).back(), "r3");
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.remove_row("thing", "r3", event()); })));
  EXPECT_EQ(ids({.cursor = next, .limit = 1}), (Things{"r4"}));
  EXPECT_EQ(ids({.cursor = next, .limit = 6}, &next).size(), 6U);
  EXPECT_EQ(next, "");
  EXPECT_EQ(code(store_->read([&](ReadTx& tx) -> Result<void> {
              HELIO_CHECK_OK(tx.list_rows("thing", {.cursor = "x1"}));
              return {};
            })),
            ErrorCode::invalid_argument);
}

TEST_P(StoreTest, ChangedTellsKindsApart) {
  Row other = row("a");
  other.kind = "other";
  const std::int64_t opened = store_->revision();
  EXPECT_EQ(store_->changed("thing"), opened);
  ASSERT_TRUE(ok(put(*store_, row("a"))));
  const std::int64_t made = store_->revision();
  EXPECT_EQ(store_->changed("thing"), made);
  EXPECT_EQ(store_->changed("other"), opened);
  ASSERT_TRUE(ok(put(*store_, other)));
  EXPECT_EQ(store_->changed("thing"), made);
  EXPECT_EQ(store_->changed("other"), store_->revision());
  // What is not committed has not changed anything.
  EXPECT_FALSE(store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.remove_row("thing", "a", event("thing.removed")));
    return fail(ErrorCode::cancelled, "no");
  }));
  EXPECT_EQ(store_->changed("thing"), made);
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.remove_row("thing", "a", event("thing.removed")); })));
  EXPECT_EQ(store_->changed("thing"), store_->revision());
}

TEST_P(StoreTest, EventsSayWhatChanged) {
  Event first = event("thing.made");
  first.job = "j-1";
  first.message = "made";
  first.data = json::Object{{"by", "hand"}};
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"x":1,"y":{"z":1}})"), first)));
  clock_.advance(1s);
  ASSERT_TRUE(ok(put(*store_, row("b"))));
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"y":{"z":2}})"))));
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.remove_row("thing", "b", event("thing.removed")); })));

  ASSERT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
    HELIO_TRY(all, tx.events({}));
    EXPECT_EQ(all.size(), 4U);
    EXPECT_EQ(all[0].type, "thing.made");
    EXPECT_EQ(all[0].message, "made");
    EXPECT_EQ(all[0].actor, "test");
    EXPECT_EQ(all[0].kind, "thing");
    EXPECT_EQ(all[0].id, "a");
    EXPECT_EQ(json::dump(all[0].data), R"({"by":"hand"})");
    EXPECT_EQ((all[1].at - all[0].at), 1s) << "an event without a time gets the clock's";
    EXPECT_EQ(json::dump(all[2].patch), R"({"x":null,"y":{"z":2}})");
    EXPECT_TRUE(all[3].patch.is_null());
    EXPECT_EQ(tx.events({.since = 2})->size(), 2U);
    EXPECT_EQ(tx.events({.limit = 1})->size(), 1U);
    EXPECT_EQ(tx.events({.job = "j-1"})->size(), 1U);
    EXPECT_EQ(tx.events({.kind = "thing", .id = "b"})->size(), 2U);
    EXPECT_EQ(tx.events({.kind = "job"})->size(), 0U);
    HELIO_TRY(names, tx.events({.names_only = true}));
    EXPECT_EQ(names.size(), 4U);
    EXPECT_EQ(names[3].id, "b");
    EXPECT_EQ(names[3].revision, all[3].revision);
    EXPECT_TRUE(names[0].patch.is_null() && names[0].data.is_null());
    return {};
  })));
}

TEST_P(StoreTest, SecretsAreRemovedByPrefix) {
  const std::string bytes("\0\xff sealed", 9);
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    for (const char* key : {"job/a/env", "job/a/token", "job/ab/env"}) HELIO_CHECK_OK(tx.put_secret(key, bytes));
    return tx.put_secret("job/ab/env", "newer");
  })));
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.remove_secrets("job/a/"); })));
  EXPECT_EQ(code(store_->write([&](WriteTx& tx) { return tx.remove_secrets(""); })), ErrorCode::invalid_argument);
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    EXPECT_EQ(*tx.get_secret("job/a/env"), std::nullopt);
    EXPECT_EQ(*tx.get_secret("job/a/token"), std::nullopt);
    EXPECT_EQ(*tx.get_secret("job/ab/env"), "newer");
    HELIO_CHECK_OK(tx.put_secret("bytes", bytes));
    EXPECT_EQ(*tx.get_secret("bytes"), bytes);
    return {};
  })));
}

TEST_P(StoreTest, IdempotencyKeysLastADay) {
  const IdempotencyRecord record{"me", "POST /v1/jobs", "k1", "hash", 201, R"({"id":"j-1"})"};
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) { return tx.put_idempotency(record, clock_.now()); })));
  auto find = [&](const char* principal, const char* key) {
    std::optional<IdempotencyRecord> found;
    EXPECT_TRUE(ok(store_->read([&](ReadTx& tx) -> Result<void> {
      HELIO_TRY(got, tx.get_idempotency(principal, "POST /v1/jobs", key));
      found = got;
      return {};
    })));
    return found;
  };
  clock_.advance(23h);
  ASSERT_TRUE(find("me", "k1"));
  EXPECT_EQ(find("me", "k1")->body_hash, "hash");
  EXPECT_EQ(find("me", "k1")->status, 201);
  EXPECT_EQ(find("me", "k1")->response, record.response);
  EXPECT_FALSE(find("you", "k1"));
  EXPECT_FALSE(find("me", "k2"));
  clock_.advance(2h);
  EXPECT_FALSE(find("me", "k1"));
  std::int64_t gone = 0;
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_TRY(n, tx.compact(Timestamp{0}));
    gone = n;
    return {};
  })));
  EXPECT_EQ(gone, 1);
}

TEST_P(StoreTest, NumbersAreNeverGivenTwice) {
  std::vector<std::int64_t> given;
  auto take = [&](WriteTx& tx) -> Result<void> {
    HELIO_TRY(n, tx.next_number("slot"));
    given.push_back(n);
    return {};
  };
  ASSERT_TRUE(ok(store_->write(take)));
  ASSERT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(take(tx));
    EXPECT_EQ(tx.next_number("other").value_or(-1), 1);
    return take(tx);
  })));
  EXPECT_EQ(given, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_P(StoreTest, OnlyTheNewestLeaseWrites) {
  const auto first = store_->take_lease("one");
  ASSERT_TRUE(ok(first));
  EXPECT_TRUE(ok(store_->write(*first, [&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.put_row(row("a"), event()));
    return {};
  })));
  const auto second = store_->take_lease("two");
  ASSERT_TRUE(ok(second));
  bool ran = false;
  const auto refused = store_->write(*first, [&](WriteTx&) -> Result<void> {
    ran = true;
    return {};
  });
  ASSERT_EQ(code(refused), ErrorCode::precondition_failed);
  EXPECT_TRUE(refused.error().message().starts_with("lease lost"));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(ok(store_->write(*second, [](WriteTx&) -> Result<void> { return {}; })));
}

TEST_P(StoreTest, ListenersHearCommitsWithEvents) {
  // One thread writes, so it is the one that commits and calls.
  std::vector<std::int64_t> heard;
  auto subscription = store_->subscribe([&](std::int64_t revision) { heard.push_back(revision); });
  ASSERT_TRUE(ok(put(*store_, row("a"))));
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) { return tx.put_secret("s", "x"); })));
  EXPECT_FALSE(ok(store_->write([](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.put_row(row("b"), event()));
    return fail(ErrorCode::cancelled, "no");
  })));
  ASSERT_TRUE(ok(put(*store_, row("b"))));
  EXPECT_EQ(heard, (std::vector<std::int64_t>{1, 2}));
  subscription.reset();
  ASSERT_TRUE(ok(put(*store_, row("c"))));
  EXPECT_EQ(heard.size(), 2U);
  subscription = store_->subscribe([&](std::int64_t) { subscription.reset(); });
  ASSERT_TRUE(ok(put(*store_, row("d"))));
  EXPECT_EQ(subscription, nullptr) << "a listener may end itself";
  subscription = store_->subscribe([](std::int64_t) {});
  store_.reset();
  subscription.reset();
}

TEST_P(StoreTest, NestedCallsAreRefusedInsteadOfWaitingForEver) {
  EXPECT_TRUE(ok(store_->write([&](WriteTx&) -> Result<void> {
    EXPECT_EQ(code(store_->write([](WriteTx&) -> Result<void> { return {}; })), ErrorCode::internal);
    EXPECT_EQ(code(store_->read([](ReadTx&) -> Result<void> { return {}; })), ErrorCode::internal);
    return {};
  })));
  EXPECT_TRUE(ok(store_->read([&](ReadTx&) { return store_->read([](ReadTx&) -> Result<void> { return {}; }); })));
}

TEST_P(StoreTest, WhatIsWrittenIsThereAfterReopening) {
  if (GetParam() == Mode::inline_memory || GetParam() == Mode::memory) return;
  ASSERT_TRUE(ok(put(*store_, row("a", R"({"x":1})"))));
  const auto lease = store_->take_lease("one");
  ASSERT_TRUE(ok(lease));
  reopen();
  EXPECT_EQ(store_->revision(), 1);
  EXPECT_EQ(doc(*store_, "a"), R"({"x":1})");
  EXPECT_GT(store_->take_lease("two")->token, lease->token);
}

// --- threads --------------------------------------------------------------------------------------------------------------------

class ThreadedStoreTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Sqlite, ThreadedStoreTest, testing::Values(Mode::memory, Mode::file), mode_name);

TEST_P(ThreadedStoreTest, ManyWritersShareCommitsAndFailAlone) {
  constexpr int kThreads = 8;
  constexpr int kWrites = 40;
  std::atomic<int> commits{0};
  const auto subscription = store_->subscribe([&](std::int64_t) { ++commits; });
  std::atomic<int> failures{0};
  constexpr int kStored = kThreads * kWrites * 3 / 4;  // of a round
  constexpr int kRoundsMost = 20;                      // a loaded machine may run the writers one after the other
  int rounds = 0;
  for (; rounds == 0 || (rounds < kRoundsMost && commits == rounds * kStored); ++rounds) {
    std::latch start(kThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < kWrites; ++i) {
          const auto done = store_->write([&](WriteTx& tx) -> Result<void> {
            HELIO_CHECK_OK(tx.put_row(row(fmt::format("{}-{}-{}", rounds, t, i)), event()));
            if (i % 4 == 0) return fail(ErrorCode::cancelled, "every fourth");
            return {};
          });
          if (!done) ++failures;
          EXPECT_EQ(done.has_value(), i % 4 != 0);
        }
      });
    }
  }
  EXPECT_EQ(failures, rounds * kThreads * kWrites / 4);
  EXPECT_EQ(store_->revision(), rounds * kStored) << "no gaps, none twice";
  EXPECT_EQ(ids({}).size(), static_cast<std::size_t>(rounds * kStored));
  EXPECT_LT(commits, rounds * kStored) << "writers that wait together share a commit";
}

TEST_P(ThreadedStoreTest, ConcurrentIncrementsLoseNone) {
  ASSERT_TRUE(ok(put(*store_, row("n", R"({"n":0})"))));
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(ok(store_->write([](WriteTx& tx) -> Result<void> {
            HELIO_TRY(found, tx.get_row("thing", "n"));
            HELIO_TRY(value, json::parse(found->doc));
            found->doc = fmt::format(R"({{"n":{}}})", value.at("n").as_int64() + 1);
            HELIO_CHECK_OK(tx.put_row(*found, event()));
            return {};
          })));
        }
      });
    }
  }
  EXPECT_EQ(doc(*store_, "n"), fmt::format(R"({{"n":{}}})", kThreads * kEach));
}

TEST_P(ThreadedStoreTest, ReadersSeeOneSnapshot) {
  std::atomic<bool> stop{false};
  ASSERT_TRUE(ok(store_->write([](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(test::upsert(tx, row("a", R"({"n":0})")));
    HELIO_CHECK_OK(test::upsert(tx, row("b", R"({"n":0})")));
    return {};
  })));
  std::vector<std::jthread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        EXPECT_TRUE(ok(store_->read([](ReadTx& tx) -> Result<void> {
          HELIO_TRY(a, tx.get_row("thing", "a"));
          HELIO_TRY(b, tx.get_row("thing", "b"));
          EXPECT_EQ(a->doc, b->doc);
          return {};
        })));
      }
    });
  }
  for (int i = 1; i <= 50; ++i) {
    EXPECT_TRUE(ok(store_->write([&](WriteTx& tx) -> Result<void> {
      const std::string text = fmt::format(R"({{"n":{}}})", i);
      HELIO_CHECK_OK(test::upsert(tx, row("a", text)));
      HELIO_CHECK_OK(test::upsert(tx, row("b", text)));
      return {};
    })));
  }
  stop = true;
}

}  // namespace
}  // namespace helio::store
