#include "store/logs/file_log_store.h"

#include "base/rng.h"
#include "base/units.h"
#include "base/zstd.h"
#include "store/logs/files.h"
#include "store/test_support.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <latch>
#include <mutex>
#include <thread>

namespace helio::store {
namespace {

using test::code;
using test::ok;

constexpr Timestamp kStart{1'700'000'000'000'000};

StreamKey key(std::string stream, std::string node = "n-h", std::string attempt = "j-1-1") {
  return {AttemptId(std::move(attempt)), NodeId(std::move(node)), std::move(stream)};
}

/// Lines that differ, so that a piece in the wrong place shows.
std::string lines(std::size_t bytes, std::uint64_t seed = 1) {
  SeededRng rng(seed);
  std::string out;
  for (int n = 0; out.size() < bytes; ++n) out += fmt::format("line {} {:x} step loss accuracy\n", n, rng.next());
  out.resize(bytes);
  return out;
}

Duration cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto us = [](const timeval& t) { return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  return Duration(us(usage.ru_utime) + us(usage.ru_stime));
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  if (const auto names = logs::names_in("/proc/self/fd")) n = names->size();
  return n;
}

class LogStoreTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void reopen() {
    logs_.reset();
    auto opened = open_file_logs(folder_ / "logs");
    ASSERT_TRUE(ok(opened));
    logs_ = std::move(*opened);
  }
  [[nodiscard]] std::string file(std::string_view name, const std::string& attempt = "j-1-1") const {
    return folder_ / ("logs/" + attempt + "/n-h/" + std::string(name));
  }
  void write_all(const StreamKey& k, std::string_view bytes, Timestamp at = kStart, std::size_t piece = 256UL << 10U) {
    auto size = logs_->open(k, "driver");
    ASSERT_TRUE(ok(size));
    for (std::size_t done = 0; done < bytes.size(); done += piece) {
      const auto next = logs_->append(k, *size + static_cast<std::int64_t>(done), bytes.substr(done, piece), at);
      ASSERT_TRUE(ok(next));
    }
  }
  std::string read_all(const StreamKey& k, std::size_t piece = 300'000) {
    std::string out;
    while (true) {
      const auto bytes = logs_->read(k, static_cast<std::int64_t>(out.size()), piece);
      EXPECT_TRUE(ok(bytes));
      if (!bytes || bytes->empty()) return out;
      out += *bytes;
    }
  }

  test::TempFolder folder_;
  std::unique_ptr<LogStore> logs_;
};

TEST_F(LogStoreTest, AppendDropsResendsAndRefusesGaps) {
  const StreamKey k = key("driver");
  EXPECT_EQ(logs_->open(k, "driver").value_or(-1), 0);
  EXPECT_EQ(logs_->append(k, 0, "hello ", kStart).value_or(-1), 6);
  EXPECT_EQ(logs_->append(k, 0, "hello ", kStart).value_or(-1), 6) << "a whole resend";
  EXPECT_EQ(logs_->append(k, 3, "lo world", kStart).value_or(-1), 11) << "half a resend";
  const auto gap = logs_->append(k, 12, "!", kStart);
  ASSERT_EQ(code(gap), ErrorCode::precondition_failed);
  EXPECT_EQ(gap.error().args().at(0), (std::pair<std::string, std::string>("size", "11")));
  EXPECT_EQ(code(logs_->append(k, -1, "!", kStart)), ErrorCode::invalid_argument);
  EXPECT_EQ(logs_->open(k, "driver").value_or(-1), 11);
  EXPECT_EQ(read_all(k), "hello world");
  EXPECT_EQ(logs_->read(k, 6, 3).value_or("?"), "wor");
  EXPECT_EQ(logs_->read(k, 50, 3).value_or("?"), "");
  EXPECT_EQ(code(logs_->append(key("other"), 0, "x", kStart)), ErrorCode::not_found);
  EXPECT_EQ(code(logs_->read(key("other"), 0, 1)), ErrorCode::not_found);
}

TEST_F(LogStoreTest, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"", "a/b", "../x", "a b", "\n"}) {
    EXPECT_EQ(code(logs_->open(key(name), "ray")), ErrorCode::invalid_argument) << name;
    EXPECT_EQ(code(logs_->read(key(name), 0, 1)), ErrorCode::invalid_argument) << name;
  }
  EXPECT_EQ(code(logs_->open(key(std::string(201, 'x')), "ray")), ErrorCode::invalid_argument);
  EXPECT_EQ(code(logs_->open(key("x", ".."), "ray")), ErrorCode::invalid_argument);
  EXPECT_EQ(code(logs_->open(key("x", "n", ".."), "ray")), ErrorCode::invalid_argument);
  EXPECT_EQ(code(logs_->remove(AttemptId(".."))), ErrorCode::invalid_argument);
  EXPECT_EQ(code(logs_->list(AttemptId(""))), ErrorCode::invalid_argument);
  EXPECT_TRUE(ok(logs_->open(key("worker-0a.b_c.out"), "worker")));
  EXPECT_TRUE(ok(logs_->open(key(std::string(200, 'x')), "ray")));
}

TEST_F(LogStoreTest, StatAndListTellWhatIsThere) {
  write_all(key("driver"), "one\n", kStart);
  write_all(key("driver"), "two\n", kStart + 5s);
  write_all(key("raylet.out", "n-w1"), "x", kStart);
  ASSERT_TRUE(ok(logs_->open(key("driver", "n-h", "j-1-2"), "driver")));
  auto meta = logs_->stat(key("driver"));
  ASSERT_TRUE(ok(meta));
  EXPECT_EQ(meta->size, 8);
  EXPECT_EQ(meta->durable, 0);
  EXPECT_EQ(meta->kind, "driver");
  EXPECT_EQ(meta->first_at, kStart);
  EXPECT_EQ(meta->last_at, kStart + 5s);
  EXPECT_FALSE(meta->ended);
  EXPECT_FALSE(meta->sealed);
  ASSERT_TRUE(ok(logs_->sync({key("driver")})));
  EXPECT_EQ(logs_->stat(key("driver"))->durable, 8);
  ASSERT_TRUE(ok(logs_->mark_ended(key("driver"))));
  EXPECT_TRUE(logs_->stat(key("driver"))->ended);
  const auto all = logs_->list(AttemptId("j-1-1"));
  ASSERT_TRUE(ok(all));
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at(0).key, key("driver"));
  EXPECT_EQ(all->at(1).key, key("raylet.out", "n-w1"));
  EXPECT_EQ(logs_->list(AttemptId("j-9-1"))->size(), 0U);
}

TEST_F(LogStoreTest, ARestartGoesOnWhereItWas) {
  const StreamKey k = key("driver");
  write_all(k, "one\ntwo\n", kStart);
  write_all(k, "three\n", kStart + 3s);
  ASSERT_TRUE(ok(logs_->mark_ended(k)));
  ASSERT_TRUE(ok(logs_->sync({k})));
  reopen();
  const auto opened = logs_->open(k, "ignored");
  ASSERT_TRUE(ok(opened));
  EXPECT_EQ(*opened, 14);
  const auto meta = logs_->stat(k);
  EXPECT_EQ(meta->kind, "driver");
  EXPECT_TRUE(meta->ended);
  EXPECT_EQ(meta->first_at, kStart);
  EXPECT_EQ(meta->last_at, kStart + 3s);
  EXPECT_EQ(logs_->append(k, 14, "late\n", kStart + 4s).value_or(-1), 19) << "bytes that come after the announced end are kept";
  EXPECT_EQ(read_all(k), "one\ntwo\nthree\nlate\n");
  EXPECT_EQ(logs_->offset_at(k, kStart + 2s).value_or(-1), 8);
}

TEST_F(LogStoreTest, AnUnfinishedAppendIsKeptAndGoneOnWith) {
  const StreamKey k = key("driver");
  write_all(k, "one\n");
  logs_.reset();
  // Killed after half of a write, and half of an index entry.
  for (const auto& [name, bytes] : {std::pair("driver.log", "tw"), std::pair("driver.idx", "\1\2\3")}) {
    FILE* out = ::fopen(file(name).c_str(), "a");
    ASSERT_NE(out, nullptr);
    ::fputs(bytes, out);
    ::fclose(out);
  }
  reopen();
  EXPECT_EQ(logs_->open(k, "driver").value_or(-1), 6);
  EXPECT_EQ(logs_->append(k, 4, "two\n", kStart + 9s).value_or(-1), 8);
  EXPECT_EQ(read_all(k), "one\ntwo\n");
  EXPECT_EQ(logs_->offset_at(k, kStart + 9s).value_or(-1), 4);
  EXPECT_EQ(logs_->offset_at(k, kStart).value_or(-1), 0);
}

TEST_F(LogStoreTest, ReadsByTimeStartAtALine) {
  const StreamKey k = key("driver");
  ASSERT_TRUE(ok(logs_->open(k, "driver")));
  std::int64_t size = 0;
  // One line and a half per append, two seconds apart.
  for (int i = 0; i < 10; ++i) {
    const std::string text = fmt::format("{:02}aaa\n{:02}b", i, i);
    size = logs_->append(k, size, text, kStart + Duration(2s * i)).value_or(-1);
  }
  auto from = [&](Duration after) {
    const auto offset = logs_->offset_at(k, kStart + after);
    EXPECT_TRUE(ok(offset));
    return logs_->read(k, offset.value_or(0), 6).value_or("?");
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(from(-1h), "00aaa\n");
    EXPECT_EQ(from(0s), "00aaa\n");
    EXPECT_EQ(from(1s), "00b01a") << "the half line in front is shown whole";
    EXPECT_EQ(from(4s), "01b02a");
    EXPECT_EQ(from(18s), "08b09a");
    EXPECT_EQ(logs_->offset_at(k, kStart + 19s).value_or(-1), size - 3) << "all is older: where the last line starts";
    ASSERT_TRUE(ok(logs_->seal(k.attempt)));
  }
}

TEST_F(LogStoreTest, TheIndexSurvivesAClockThatGoesBack) {
  const StreamKey k = key("driver");
  write_all(k, "one\n", kStart + 100s);
  write_all(k, "two\n", kStart);
  write_all(k, "three\n", kStart + 200s);
  EXPECT_EQ(logs_->offset_at(k, kStart + 150s).value_or(-1), 8);
  EXPECT_EQ(logs_->stat(k)->last_at, kStart + 200s);
}

TEST_F(LogStoreTest, SealedStreamsReadTheSame) {
  const StreamKey big = key("driver");
  const StreamKey empty = key("worker.err");
  const std::string content = lines((3UL << 20U) + 12'345);
  write_all(big, content);
  ASSERT_TRUE(ok(logs_->open(empty, "worker")));
  const std::int64_t before = *logs_->total_bytes();
  ASSERT_TRUE(ok(logs_->seal(AttemptId("j-1-1"))));
  ASSERT_TRUE(ok(logs_->seal(AttemptId("j-1-1"))));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read_all(big), content);
    EXPECT_EQ(logs_->read(big, (1 << 20) - 5, 10).value_or("?"), content.substr((1U << 20U) - 5, 10)) << "across frames";
    EXPECT_EQ(logs_->read(big, 100, 4UL << 20U).value_or("?"), content.substr(100));
    EXPECT_EQ(logs_->read(empty, 0, 10).value_or("?"), "");
    const auto meta = logs_->stat(big);
    EXPECT_TRUE(meta->sealed);
    EXPECT_TRUE(meta->ended);
    EXPECT_EQ(meta->size, static_cast<std::int64_t>(content.size()));
    EXPECT_EQ(meta->durable, meta->size);
    EXPECT_LT(meta->stored, meta->size / 2);
    EXPECT_EQ(meta->first_at, kStart);
    EXPECT_EQ(logs_->open(big, "driver").value_or(-1), meta->size);
    EXPECT_EQ(code(logs_->append(big, meta->size, "x", kStart)), ErrorCode::precondition_failed);
    EXPECT_EQ(logs_->append(big, 0, content.substr(0, 10), kStart).value_or(-1), meta->size) << "a resend is no error";
    EXPECT_FALSE(logs::exists(file("driver.log")));
    EXPECT_TRUE(logs::exists(file("driver.zst")));
    reopen();
  }
  EXPECT_LT(*logs_->total_bytes(), before / 2);
}

TEST_F(LogStoreTest, TheZstdProgramReadsSealedFiles) {
  const std::string content = lines(2'500'000);
  write_all(key("driver"), content);
  ASSERT_TRUE(ok(logs_->seal(AttemptId("j-1-1"))));
  if (::system("command -v zstd >/dev/null 2>&1") != 0) GTEST_SKIP() << "no zstd program";  // NOLINT(concurrency-mt-unsafe)
  const std::string out = folder_ / "out";
  ASSERT_EQ(::system(("zstd -q -d -o " + out + " " + file("driver.zst")).c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(logs::read_file(out).value_or("?"), content);
}

TEST_F(LogStoreTest, AKillDuringSealLosesNothing) {
  const StreamKey k = key("driver");
  const std::string content = lines(1'500'000);
  write_all(k, content);
  const std::string plain = *logs::read_file(file("driver.log"));
  ASSERT_TRUE(ok(logs_->seal(k.attempt)));
  const std::string packed = *logs::read_file(file("driver.zst"));

  // Half of the new file is there.
  ASSERT_TRUE(ok(logs::unlink_path(file("driver.zst"))));
  ASSERT_TRUE(ok(logs::replace_file(file("driver.log"), plain)));
  ASSERT_TRUE(ok(logs::replace_file(file("driver.zst.tmp"), packed.substr(0, packed.size() / 2))));
  reopen();
  EXPECT_EQ(read_all(k), content);
  ASSERT_TRUE(ok(logs_->seal(k.attempt)));
  EXPECT_EQ(read_all(k), content);
  EXPECT_FALSE(logs::exists(file("driver.zst.tmp")));

  // Both are whole.
  ASSERT_TRUE(ok(logs::replace_file(file("driver.log"), plain)));
  reopen();
  EXPECT_EQ(read_all(k), content);
  ASSERT_TRUE(ok(logs_->seal(k.attempt)));
  EXPECT_FALSE(logs::exists(file("driver.log")));
}

TEST_F(LogStoreTest, ADamagedSealedFileIsAnErrorNotGarbage) {
  const StreamKey k = key("driver");
  write_all(k, lines(1'500'000));
  ASSERT_TRUE(ok(logs_->seal(k.attempt)));
  std::string packed = *logs::read_file(file("driver.zst"));
  packed[1000] = static_cast<char>(packed[1000] ^ 1);
  ASSERT_TRUE(ok(logs::replace_file(file("driver.zst"), packed)));
  reopen();
  EXPECT_EQ(code(logs_->read(k, 0, 100)), ErrorCode::internal);
  EXPECT_TRUE(ok(logs_->read(k, 1'200'000, 100))) << "other frames are not harmed";
  ASSERT_TRUE(ok(logs::replace_file(file("driver.zst"), packed.substr(0, packed.size() - 3))));
  reopen();
  EXPECT_EQ(code(logs_->read(k, 0, 100)), ErrorCode::internal);
  EXPECT_EQ(logs_->list(k.attempt)->size(), 0U);
}

TEST_F(LogStoreTest, ReadersGoOnWhileAStreamIsWrittenAndSealed) {
  const StreamKey k = key("driver");
  const std::string content = lines(6UL << 20U);
  ASSERT_TRUE(ok(logs_->open(k, "driver")));
  std::latch start(4);
  std::vector<std::jthread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      start.arrive_and_wait();
      std::string seen;
      while (seen.size() < content.size()) {
        const auto bytes = logs_->read(k, static_cast<std::int64_t>(seen.size()), 100'000 + 7'777 * static_cast<std::size_t>(t));
        ASSERT_TRUE(ok(bytes));
        seen += *bytes;
        if (bytes->empty()) std::this_thread::yield();
      }
      EXPECT_EQ(seen, content);
    });
  }
  start.arrive_and_wait();
  write_all(k, content, kStart, 64UL << 10U);
  ASSERT_TRUE(ok(logs_->seal(k.attempt)));
}

TEST_F(LogStoreTest, WatchersHearOfTheirAttemptOnly) {
  std::atomic<int> woken{0};
  auto watch = logs_->watch(AttemptId("j-1-1"), [&] { ++woken; });
  auto woke = [&] { return woken.exchange(0) > 0; };
  ASSERT_TRUE(ok(logs_->open(key("driver"), "driver")));
  EXPECT_TRUE(woke());
  ASSERT_TRUE(ok(logs_->append(key("driver"), 0, "x", kStart)));
  EXPECT_TRUE(woke());
  ASSERT_TRUE(ok(logs_->mark_ended(key("driver"))));
  EXPECT_TRUE(woke());
  ASSERT_TRUE(ok(logs_->open(key("driver", "n-h", "j-1-2"), "driver")));
  ASSERT_TRUE(ok(logs_->append(key("driver", "n-h", "j-1-2"), 0, "x", kStart)));
  EXPECT_FALSE(woke());
  ASSERT_TRUE(ok(logs_->seal(AttemptId("j-1-1"))));
  EXPECT_TRUE(woke());
  watch.reset();
  ASSERT_TRUE(ok(logs_->remove(AttemptId("j-1-1"))));
  EXPECT_FALSE(woke());
  watch = logs_->watch(AttemptId("j-1-2"), [&] { watch.reset(); });
  ASSERT_TRUE(ok(logs_->append(key("driver", "n-h", "j-1-2"), 1, "x", kStart)));
  EXPECT_EQ(watch, nullptr) << "a watch may end itself";
  watch = logs_->watch(AttemptId("j-1-2"), [] {});
  logs_.reset();
  watch.reset();
}

TEST_F(LogStoreTest, AFollowerIsWokenByEachLine) {
  const StreamKey k = key("driver");
  ASSERT_TRUE(ok(logs_->open(k, "driver")));
  std::mutex mutex;
  std::condition_variable changed;
  bool news = false;
  const auto watch = logs_->watch(k.attempt, [&] {
    const std::lock_guard lock(mutex);
    news = true;
    changed.notify_one();
  });
  const std::string content = lines(20'000);
  std::string seen;
  std::jthread follower([&] {
    while (seen.size() < content.size()) {
      std::unique_lock lock(mutex);
      if (!changed.wait_for(lock, 10s, [&] { return news; })) return;
      news = false;
      lock.unlock();
      seen += logs_->read(k, static_cast<std::int64_t>(seen.size()), 1 << 20).value_or("");
    }
  });
  for (std::size_t at = 0; at < content.size(); at += 100) {
    ASSERT_TRUE(ok(logs_->append(k, static_cast<std::int64_t>(at), std::string_view(content).substr(at, 100), kStart)));
  }
  follower.join();
  EXPECT_EQ(seen, content);
}

TEST_F(LogStoreTest, RemoveWhileItIsSealedLeavesNothing) {
  constexpr int kStreams = 60;
  for (int round = 0; round < 20; ++round) {
    const AttemptId attempt("j-" + std::to_string(round) + "-1");
    for (int stream = 0; stream < kStreams; ++stream) write_all(key("s" + std::to_string(stream), "n-h", attempt.value), "a line\n");
    const auto files = [&] {
      std::error_code ignored;
      return std::distance(std::filesystem::directory_iterator(folder_ / ("logs/" + attempt.value + "/n-h"), ignored), {});
    };
    // Sealing makes a file beside each, and then takes the old ones away: that is when.
    std::atomic<bool> sealed = false;
    std::thread sealing([&] {
      static_cast<void>(logs_->seal(attempt));
      sealed = true;
    });
    std::ptrdiff_t most = 0;
    for (std::ptrdiff_t now = files(); !sealed && now >= most; now = files()) most = now;
    const auto removed = logs_->remove(attempt);
    sealing.join();
    EXPECT_TRUE(ok(removed)) << round;
    EXPECT_FALSE(std::filesystem::exists(folder_ / ("logs/" + attempt.value))) << round;
  }
}

TEST_F(LogStoreTest, RemoveLeavesNothing) {
  write_all(key("driver"), lines(10'000));
  write_all(key("driver", "n-h", "j-1-2"), lines(10'000));
  ASSERT_TRUE(ok(logs_->seal(AttemptId("j-1-2"))));
  ASSERT_TRUE(ok(logs_->read(key("driver", "n-h", "j-1-2"), 0, 1)));
  ASSERT_TRUE(ok(logs_->remove(AttemptId("j-1-1"))));
  EXPECT_EQ(code(logs_->append(key("driver"), 10'000, "x", kStart)), ErrorCode::not_found);
  EXPECT_EQ(code(logs_->read(key("driver"), 0, 1)), ErrorCode::not_found);
  EXPECT_GT(*logs_->total_bytes(), 0);
  ASSERT_TRUE(ok(logs_->remove(AttemptId("j-1-2"))));
  EXPECT_EQ(code(logs_->read(key("driver", "n-h", "j-1-2"), 0, 1)), ErrorCode::not_found);
  ASSERT_TRUE(ok(logs_->remove(AttemptId("j-1-2"))));
  EXPECT_EQ(*logs_->total_bytes(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "logs"));
}

TEST_F(LogStoreTest, ManyStreamsShareFewDescriptors) {
  const std::size_t before = open_descriptors();
  constexpr int kStreams = 150;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kStreams; ++i) {
      const StreamKey k = key(fmt::format("w{}", i), "n-h", fmt::format("j-{}-1", i % 7));
      write_all(k, fmt::format("{} of {}\n", round, i));
    }
    EXPECT_LE(open_descriptors(), before + 128);
  }
  std::vector<StreamKey> keys;
  for (int i = 0; i < kStreams; ++i) keys.push_back(key(fmt::format("w{}", i), "n-h", fmt::format("j-{}-1", i % 7)));
  ASSERT_TRUE(ok(logs_->sync(keys)));
  for (int i = 0; i < kStreams; ++i) {
    const StreamKey& k = keys[static_cast<std::size_t>(i)];
    EXPECT_EQ(logs_->stat(k)->durable, logs_->stat(k)->size);
    EXPECT_EQ(read_all(k), fmt::format("0 of {}\n1 of {}\n", i, i));
  }
  for (int a = 0; a < 7; ++a) ASSERT_TRUE(ok(logs_->seal(AttemptId(fmt::format("j-{}-1", a)))));
  EXPECT_LE(open_descriptors(), before + 4) << "nothing stays open for what is sealed";
}

TEST_F(LogStoreTest, AFullDiskLeavesNothingHalfWritten) {
  const StreamKey k = key("driver");
  write_all(k, lines(10'000));
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  rlimit lower = limit;
  lower.rlim_cur = 15'000;
  ::setrlimit(RLIMIT_FSIZE, &lower);
  const auto refused = logs_->append(k, 10'000, std::string(10'000, 'y'), kStart);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, before);
  EXPECT_EQ(code(refused), ErrorCode::storage_full);
  EXPECT_EQ(logs::size_of(file("driver.log")), 10'000);
  EXPECT_EQ(logs_->append(k, 10'000, "z\n", kStart).value_or(-1), 10'002);
  EXPECT_EQ(read_all(k), lines(10'000) + "z\n");
}

TEST_F(LogStoreTest, AKilledWriterLosesNoAcknowledgedByte) {
  const StreamKey k = key("driver");
  const std::string content = lines(8UL << 20U);
  SeededRng rng(7);
  for (int round = 0; round < 6; ++round) {
    logs_.reset();
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto logs = *open_file_logs(folder_ / "logs");
      std::int64_t size = logs->open(k, "driver").value_or(0);
      while (size < static_cast<std::int64_t>(content.size())) {
        size = logs->append(k, size, std::string_view(content).substr(static_cast<std::size_t>(size), 10'000), kStart).value_or(0);
        if (!logs->sync({k}) || ::write(pipe[1], &size, sizeof size) != sizeof size) ::_exit(1);
      }
      ::pause();
      ::_exit(2);
    }
    ::close(pipe[1]);
    std::int64_t acknowledged = 0;
    std::int64_t got = 0;
    for (std::uint64_t n = 1 + rng.below(80); n > 0 && ::read(pipe[0], &got, sizeof got) == sizeof got; --n) acknowledged = got;
    ::kill(child, SIGKILL);
    while (::read(pipe[0], &got, sizeof got) == sizeof got) acknowledged = got;
    ::close(pipe[0]);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    reopen();
    const auto size = logs_->open(k, "driver");
    ASSERT_TRUE(ok(size));
    EXPECT_GE(*size, acknowledged);
    EXPECT_EQ(read_all(k), content.substr(0, static_cast<std::size_t>(*size)));
  }
}

TEST_F(LogStoreTest, TwoHundredMegabytesCostLittle) {
  const StreamKey k = key("driver");
  const std::string piece = lines(256UL << 10U);
  constexpr int kPieces = 800;
  ASSERT_TRUE(ok(logs_->open(k, "driver")));
  const Duration before = cpu_time();
  std::int64_t size = 0;
  for (int i = 0; i < kPieces; ++i) {
    size = logs_->append(k, size, piece, kStart + Duration(10ms * i)).value_or(-1);
    if (i % 16 == 15) ASSERT_TRUE(ok(logs_->sync({k})));
  }
  const Duration appended = cpu_time() - before;
  ASSERT_EQ(size, static_cast<std::int64_t>(kPieces * piece.size()));
  ASSERT_TRUE(ok(logs_->seal(k.attempt)));
  const Duration sealed = cpu_time() - before - appended;
  std::int64_t read = 0;
  while (read < size) {
    const auto bytes = logs_->read(k, read, 256UL << 10U);
    ASSERT_TRUE(ok(bytes));
    ASSERT_EQ(*bytes, piece);
    read += static_cast<std::int64_t>(bytes->size());
  }
  const Duration all = cpu_time() - before;
  ::printf("200 MiB: append and sync %s, seal %s, read sealed %s of CPU time; %s on disk\n", format_duration(appended).c_str(),
           format_duration(sealed).c_str(), format_duration(all - appended - sealed).c_str(),
           format_bytes({logs_->stat(k)->stored}).c_str());
  EXPECT_LT(appended, 1s);
}

}  // namespace
}  // namespace helio::store
