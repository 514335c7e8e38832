// What stays when a process is killed, a disk fills up, a schema is not ours, or a simulated daemon crashes.
#include "base/clock.h"
#include "base/rng.h"
#include "store/fault_store.h"
#include "store/lock_file.h"
#include "store/replay.h"
#include "store/sql/sqlite/connection.h"
#include "store/sql/sqlite/migrations.h"
#include "store/sql/sqlite/sqlite_store.h"
#include "store/test_support.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

namespace helio::store {
namespace {

using test::code;
using test::doc;
using test::event;
using test::ok;
using test::put;
using test::row;

// --- kill -9 --------------------------------------------------------------------------------------------------------------------

/// Child: two threads store rows "<round>-<thread>-<n>" and report each acknowledged one as a line in the pipe, until killed.
[[noreturn]] void write_until_killed(const std::string& path, int round, int pipe) {
  const SystemClock clock;
  auto store = open_sqlite({.path = path, .clock = clock});
  if (!store) ::_exit(3);
  auto writer = [&](int thread) {
    for (int n = 0;; ++n) {
      const std::string id = fmt::format("{}-{}-{}", round, thread, n);
      if (!put(**store, row(id, fmt::format(R"({{"text":"{}"}})", std::string(300, 'x'))))) ::_exit(4);
      const std::string line = id + "\n";
      if (::write(pipe, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(5);
    }
  };
  std::thread other(writer, 1);
  writer(0);
  ::_exit(6);
}

TEST(KillTest, EveryAcknowledgedRowOutlivesTheWriter) {
  const test::TempFolder folder;
  const std::string path = folder / "store.db";
  constexpr std::uint64_t kSeed = 20261130;
  SeededRng rng(kSeed);
  std::vector<std::string> acknowledged;
  for (int round = 0; round < 10; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_until_killed(path, round, pipe[1]);
    ::close(pipe[1]);
    const std::uint64_t wanted = 1 + rng.below(300);
    std::string text;
    std::array<char, 512> piece{};
    std::uint64_t lines = 0;
    bool killed = false;
    while (true) {
      const ssize_t n = ::read(pipe[0], piece.data(), piece.size());
      if (n <= 0) break;
      for (const char c : std::string_view(piece.data(), static_cast<std::size_t>(n))) lines += c == '\n' ? 1U : 0U;
      text.append(piece.data(), static_cast<std::size_t>(n));
      if (lines >= wanted && !killed) killed = ::kill(child, SIGKILL) == 0;
    }
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      acknowledged.push_back(text.substr(at, end - at));
    }

    const SystemClock clock;
    auto store = open_sqlite({.path = path, .clock = clock});
    ASSERT_TRUE(ok(store));
    for (const std::string& id : acknowledged) ASSERT_NE(doc(**store, id), "absent") << id << " in round " << round << ", seed " << kSeed;
    ASSERT_TRUE(ok(check_replay(**store)));
  }
  EXPECT_GE(acknowledged.size(), 10U);
}

// --- disk full ------------------------------------------------------------------------------------------------------------------

/// No file of this process grows beyond `bytes` while the object lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes) {
    before_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    rlimit lower = limit_;
    lower.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &lower);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    ::signal(SIGXFSZ, before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit limit_{};
  sighandler_t before_;
};

TEST(DiskFullTest, WritesFailWithThatReasonAndTheStoreStaysWhole) {
  const test::TempFolder folder;
  const SystemClock clock;
  const SqliteOptions options{.path = folder / "store.db", .clock = clock};
  auto store = *open_sqlite(options);
  const std::string text = fmt::format(R"({{"text":"{}"}})", std::string(4000, 'x'));
  int stored = 0;
  {
    const FileSizeLimit limit(1'500'000);
    while (stored < 1000) {
      const auto done = put(*store, row(std::to_string(stored), text));
      if (!done) {
        EXPECT_EQ(code(done), ErrorCode::storage_full) << done.error().text();
        break;
      }
      ++stored;
    }
    ASSERT_GT(stored, 10);
    ASSERT_LT(stored, 1000) << "the limit was never reached";
    // Several at once share the failure; nobody hangs, and reads go on.
    std::atomic<int> refused{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          const auto done = put(*store, row(fmt::format("late-{}", t), text));
          if (code(done) == ErrorCode::storage_full) ++refused;
        });
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_EQ(doc(*store, "0"), text);
  }
  ASSERT_TRUE(ok(put(*store, row("after", text)))) << "goes on once there is room";
  for (int i = 0; i < stored; ++i) ASSERT_EQ(doc(*store, std::to_string(i)), text);
  ASSERT_TRUE(ok(check_replay(*store)));
  store.reset();
  store = *open_sqlite(options);
  ASSERT_TRUE(ok(check_replay(*store)));
  EXPECT_EQ(doc(*store, "after"), text);
}

// --- schema ---------------------------------------------------------------------------------------------------------------------

class MigrationTest : public testing::Test {
 protected:
  std::unique_ptr<sqlite::Connection> db_ = *sqlite::Connection::open({.path = ":memory:"});
  static constexpr sqlite::Migration kFirst{1, "first", "CREATE TABLE a (x); INSERT INTO a VALUES (1);"};
  static constexpr sqlite::Migration kSecond{2, "second", "ALTER TABLE a ADD COLUMN y;"};
  std::int64_t rows() {
    auto s = *db_->prepare("SELECT count(*) FROM a");
    EXPECT_TRUE(ok(s.step()));
    return s.integer(0);
  }
};

TEST_F(MigrationTest, EachIsAppliedOnce) {
  const std::array one{kFirst};
  const std::array both{kFirst, kSecond};
  ASSERT_TRUE(ok(sqlite::migrate(*db_, one, {})));
  ASSERT_TRUE(ok(sqlite::migrate(*db_, both, {})));
  ASSERT_TRUE(ok(sqlite::migrate(*db_, both, {})));
  EXPECT_EQ(rows(), 1);
  EXPECT_TRUE(ok(db_->script("SELECT y FROM a")));
}

TEST_F(MigrationTest, AChangedTextIsRefused) {
  const std::array one{kFirst};
  ASSERT_TRUE(ok(sqlite::migrate(*db_, one, {})));
  const std::array changed{sqlite::Migration{1, "first", "CREATE TABLE a (x, z);"}, kSecond};
  const auto refused = sqlite::migrate(*db_, changed, {});
  ASSERT_EQ(code(refused), ErrorCode::precondition_failed);
  EXPECT_NE(refused.error().message().find("migration 1 (first)"), std::string::npos);
  EXPECT_FALSE(ok(db_->script("SELECT y FROM a"))) << "nothing was applied";
}

TEST_F(MigrationTest, ANewerDatabaseIsRefused) {
  const std::array both{kFirst, kSecond};
  const std::array one{kFirst};
  ASSERT_TRUE(ok(sqlite::migrate(*db_, both, {})));
  EXPECT_EQ(code(sqlite::migrate(*db_, one, {})), ErrorCode::precondition_failed);
}

TEST_F(MigrationTest, AFailedOneLeavesNothing) {
  const std::array broken{kFirst, sqlite::Migration{2, "broken", "CREATE TABLE b (x); CREATE TABLE a (x);"}};
  const auto refused = sqlite::migrate(*db_, broken, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("migration 2 (broken)"), std::string::npos);
  EXPECT_FALSE(ok(db_->script("SELECT x FROM b")));
  EXPECT_EQ(rows(), 1) << "what came before it stays";
}

TEST(OpenTest, AFileThatIsNoDatabaseIsRefusedAndLeftAlone) {
  const test::TempFolder folder;
  const SystemClock clock;
  const std::string path = folder / "store.db";
  const std::string content(5000, 'x');
  FILE* file = ::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  ::fwrite(content.data(), 1, content.size(), file);
  ::fclose(file);
  const auto opened = open_sqlite({.path = path, .clock = clock});
  ASSERT_EQ(code(opened), ErrorCode::internal);
  EXPECT_NE(opened.error().message().find("not a database"), std::string::npos) << opened.error().text();
  EXPECT_EQ(std::filesystem::file_size(path), content.size());
}

TEST(OpenTest, TheFileIsForItsOwnerOnly) {
  const test::TempFolder folder;
  const SystemClock clock;
  const auto store = open_sqlite({.path = folder / "store.db", .clock = clock});
  ASSERT_TRUE(ok(store));
  for (const char* name : {"store.db", "store.db-wal"}) {
    struct stat info{};
    ASSERT_EQ(::stat((folder / name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << name;
  }
  EXPECT_EQ(code(open_sqlite({.path = folder / "absent/store.db", .clock = clock})), ErrorCode::not_found);
}

// --- simulated crashes ----------------------------------------------------------------------------------------------------------

class FaultTest : public testing::Test {
 protected:
  void start() { inner_ = *open_sqlite({.path = "", .clock = clock_, .inline_mode = true, .memory = memory_}); }
  ManualClock clock_;
  std::shared_ptr<MemoryDb> memory_ = *make_memory_db();
  std::unique_ptr<Store> inner_;
};

TEST_F(FaultTest, ACrashBeforeTheCommitLeavesNothingAndOneAfterItEverything) {
  start();
  Fault next = Fault::none;
  auto faulty = std::make_unique<FaultStore>(*inner_, [&](std::int64_t) { return next; });
  ASSERT_TRUE(ok(put(*faulty, row("a"))));
  next = Fault::fail;
  EXPECT_EQ(code(put(*faulty, row("b"))), ErrorCode::unavailable);
  EXPECT_EQ(doc(*faulty, "b"), "absent");
  next = Fault::crash_before_commit;
  EXPECT_THROW(static_cast<void>(put(*faulty, row("c"))), Crash);
  faulty.reset();
  start();
  EXPECT_EQ(doc(*inner_, "a"), "{}");
  EXPECT_EQ(doc(*inner_, "c"), "absent");
  faulty = std::make_unique<FaultStore>(*inner_, [](std::int64_t number) { return number == 2 ? Fault::crash_after_commit : Fault::none; });
  int heard = 0;
  const auto subscription = faulty->subscribe([&](std::int64_t) { ++heard; });
  ASSERT_TRUE(ok(put(*faulty, row("c"))));
  EXPECT_THROW(static_cast<void>(put(*faulty, row("d"))), Crash);
  EXPECT_EQ(faulty->writes(), 2);
  EXPECT_EQ(heard, 2);
  faulty.reset();
  start();
  EXPECT_EQ(doc(*inner_, "d"), "{}");
  EXPECT_EQ(inner_->revision(), 3);
  EXPECT_TRUE(ok(check_replay(*inner_)));
}

TEST_F(FaultTest, AFailingFunctionFailsForItsOwnReason) {
  start();
  FaultStore faulty(*inner_, [](std::int64_t) { return Fault::crash_after_commit; });
  EXPECT_EQ(code(faulty.write([](WriteTx&) -> Result<void> { return fail(ErrorCode::cancelled, "no"); })), ErrorCode::cancelled);
  const auto lease = faulty.take_lease("one");
  ASSERT_TRUE(ok(lease));
  ASSERT_TRUE(ok(faulty.take_lease("two")));
  EXPECT_EQ(code(faulty.write(*lease, [](WriteTx&) -> Result<void> { return {}; })), ErrorCode::precondition_failed);
}

// --- lock -----------------------------------------------------------------------------------------------------------------------

TEST(LockFileTest, TheSecondIsToldWhoHoldsIt) {
  const test::TempFolder folder;
  const std::string path = folder / "lock";
  const std::string self = fmt::format("heliostatd 0.1.0 pid {}", ::getpid());
  auto first = LockFile::acquire(path, self + "\nmore");
  ASSERT_TRUE(ok(first));
  const auto second = LockFile::acquire(path, "another");
  ASSERT_EQ(code(second), ErrorCode::conflict);
  EXPECT_EQ(second.error().message(), path + " is held by " + self);
  first->reset();
  EXPECT_TRUE(ok(LockFile::acquire(path, "another")));
  EXPECT_EQ(code(LockFile::acquire(folder / "absent/lock", "x")), ErrorCode::not_found);
}

TEST(LockFileTest, WhoOnlyAsksWhoHoldsItIsWaitedFor) {
  const test::TempFolder folder;
  const std::string path = folder / "lock";
  const int asks = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(asks, 0);
  ASSERT_EQ(::flock(asks, LOCK_SH), 0);
  std::thread later([asks] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::close(asks);
  });
  EXPECT_TRUE(ok(LockFile::acquire(path, "x")));
  later.join();
}

TEST(LockFileTest, KnowsThatItsFileIsGoneOrAnother) {
  const test::TempFolder folder;
  const std::string path = folder / "lock";
  const auto lock = LockFile::acquire(path, "x");
  ASSERT_TRUE(ok(lock));
  EXPECT_TRUE((*lock)->is_in_place());
  ASSERT_EQ(::rename(path.c_str(), (folder / "other").c_str()), 0);
  EXPECT_FALSE((*lock)->is_in_place());
  const auto second = LockFile::acquire(path, "y");
  ASSERT_TRUE(ok(second));
  EXPECT_FALSE((*lock)->is_in_place());
  EXPECT_TRUE((*second)->is_in_place());
}

TEST(LockFileTest, AKilledHolderLeavesItFree) {
  const test::TempFolder folder;
  const std::string path = folder / "lock";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = LockFile::acquire(path, "child");
    const char done = lock ? 'y' : 'n';
    if (::write(pipe[1], &done, 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char done = 0;
  ASSERT_EQ(::read(pipe[0], &done, 1), 1);
  EXPECT_EQ(done, 'y');
  EXPECT_EQ(code(LockFile::acquire(path, "parent")), ErrorCode::conflict);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(ok(LockFile::acquire(path, "parent")));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(LockFileTest, AHolderThatIsStillDyingIsWaitedFor) {
  const test::TempFolder folder;
  const std::string path = folder / "lock";
  std::array<int, 2> held{};
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(held.data()), 0);
  ASSERT_EQ(::pipe(go.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(go[1]);
    // The leader ends before the thread that keeps the file open, as the threads of a killed process may.
    std::thread([&, lock = LockFile::acquire(path, fmt::format("child pid {}", ::getpid()))] {
      char byte = 0;
      while (::read(go[0], &byte, 1) < 0) {
      }
      ::_exit(0);
    }).detach();
    if (::write(held[1], "y", 1) != 1) ::_exit(1);
    ::syscall(SYS_exit, 0);  // this thread alone, without unwinding
  }
  char byte = 0;
  ASSERT_EQ(::read(held[0], &byte, 1), 1);
  const auto is_zombie = [&] {
    std::ifstream stat(fmt::format("/proc/{}/stat", child));
    const std::string text((std::istreambuf_iterator<char>(stat)), {});
    return text.find(") Z") != std::string::npos;
  };
  while (!is_zombie()) std::this_thread::yield();
  Result<std::unique_ptr<LockFile>> lock = fail(ErrorCode::internal, "not asked");
  std::thread waiter([&] { lock = LockFile::acquire(path, "parent"); });
  ::close(go[0]);
  ::close(go[1]);
  waiter.join();
  EXPECT_TRUE(ok(lock));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(held[0]);
  ::close(held[1]);
}

}  // namespace
}  // namespace helio::store
