#include "service/logs.h"

#include "service/world_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace helio::service {
namespace {

class LogsTest : public testing::Test {
 protected:
  void SetUp() override {
    world.add_pool();
    job = world.submit(World::spec());
    attempt = world.attempt_of(job);
  }

  [[nodiscard]] static store::StreamKey key(const model::Attempt& of, const std::string& node = "h", const std::string& stream = "driver") {
    return {of.id, NodeId(of.id.value + "-" + node), stream};
  }
  void write(const store::StreamKey& to, const std::string& text) {
    const auto size = world.logs->open(to, to.stream == "driver" ? "driver" : "ray");
    ASSERT_TRUE(size) << size.error().text();
    ASSERT_TRUE(world.logs->append(to, *size, text, world.clock.now()));
    ASSERT_TRUE(world.logs->sync({to}));
  }
  void end_attempt(model::Attempt& which) {
    which.state = model::AttemptState::failed;
    world.put(which, job.id.value);
  }
  [[nodiscard]] std::unique_ptr<LogReader> open(const LogQuery& query) {
    auto reader = logs.open(job.id, query);
    EXPECT_TRUE(reader) << reader.error().text();
    return std::move(*reader);
  }
  /// Reads until the reader has no more for now.
  static std::string drain(LogReader& reader, LogReader::State expected = LogReader::State::end) {
    std::string out;
    while (true) {
      const std::size_t had = out.size();
      const auto state = reader.next(out);
      EXPECT_TRUE(state) << state.error().text();
      if (!state) return out;
      if (*state != LogReader::State::data) {
        EXPECT_EQ(static_cast<int>(*state), static_cast<int>(expected));
        return out;
      }
      EXPECT_GT(out.size(), had) << "data without bytes would end a chunked body";
    }
  }
  [[nodiscard]] std::string all(const LogQuery& query) { return drain(*open(query)); }

  World world;
  Logs logs{*world.db, *world.logs};
  model::Job job;
  model::Attempt attempt;
};

TEST_F(LogsTest, attempts_are_read_one_after_the_other) {
  write(key(attempt), "one\n");
  end_attempt(attempt);
  const model::Attempt second = world.attempt_of(job, 2);
  write(key(second), "two\n");
  EXPECT_EQ(all({}), "one\ntwo\n");
  LogQuery query;
  query.attempt = 2;
  EXPECT_EQ(all(query), "two\n");
  query.attempt = 3;
  const auto none = logs.open(job.id, query);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::not_found);
  EXPECT_EQ(logs.streams(job.id)->size(), 2U);
}

TEST_F(LogsTest, ranges_count_over_the_whole_selection) {
  write(key(attempt), "01234");
  const model::Attempt second = world.attempt_of(job, 2);
  write(key(second), "56789");
  LogQuery query;
  query.offset = 3;
  query.limit = 4;
  EXPECT_EQ(all(query), "3456");
  query.offset = -3;
  query.limit = -1;
  EXPECT_EQ(all(query), "789");
  query.offset = -100;
  EXPECT_EQ(all(query), "0123456789");
  query.offset = 100;
  EXPECT_EQ(all(query), "");
  query.offset = 0;
  query.limit = 0;
  EXPECT_EQ(all(query), "");
}

TEST_F(LogsTest, nodes_have_short_names) {
  write(key(attempt, "h", "raylet.err"), "head\n");
  write(key(attempt, "w1", "raylet.err"), "worker 1\n");
  write(key(attempt, "w1", "driver"), "driver on a worker\n");
  LogQuery query;
  query.stream = "raylet.err";
  query.node = "head";
  EXPECT_EQ(all(query), "head\n");
  query.node = "w1";
  EXPECT_EQ(all(query), "worker 1\n");
  query.node = attempt.id.value + "-w1";
  EXPECT_EQ(all(query), "worker 1\n");
  query.node = "w2";
  EXPECT_EQ(logs.open(job.id, query).error().code(), ErrorCode::not_found);
  query.node = "";
  EXPECT_EQ(all(query), "worker 1\n") << "without a name: the node that holds the driver's log";
  for (const char* bad : {"w0", "w", "x1", "w-1", "worker"}) {
    query.node = bad;
    const auto refused = logs.open(job.id, query);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().path(), "query.node");
  }
  EXPECT_EQ(all({}), "driver on a worker\n");
}

TEST_F(LogsTest, what_a_job_does_not_have_is_an_error_and_what_may_come_is_none) {
  LogQuery query;
  query.stream = "raylet.err";
  EXPECT_EQ(all(query), "") << "nothing is here yet";
  EXPECT_EQ(all({}), "");
  write(key(attempt, "h", "raylet.err"), "head\n");
  EXPECT_EQ(all({}), "") << "the driver has not begun";
  query.stream = "raylet.out";
  const auto stream = logs.open(job.id, query);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code(), ErrorCode::not_found);
  EXPECT_EQ(stream.error().path(), "query.stream");
  query.follow = true;
  EXPECT_TRUE(logs.open(job.id, query)) << "a follower waits for it";
  world.force(job.id, model::JobState::failed);
  EXPECT_FALSE(logs.open(job.id, query)) << "nothing comes after the end";
  LogQuery node;
  node.node = "w1";
  EXPECT_EQ(logs.open(job.id, node).error().path(), "query.node");
  EXPECT_EQ(all({}), "") << "the driver never began";
}

TEST_F(LogsTest, grep_gives_whole_matching_lines) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("step {} loss={}\n", i, i % 7);
  write(key(attempt), text + "last loss=3");
  LogQuery query;
  query.grep = "step 4999\\d |^last";
  std::string expected;
  for (int i = 49'990; i < 50'000; ++i) expected += fmt::format("step {} loss={}\n", i, i % 7);
  EXPECT_EQ(all(query), expected + "last loss=3\n");
  query.grep = "(";
  const auto refused = logs.open(job.id, query);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().path(), "query.grep");
}

TEST_F(LogsTest, since_starts_at_what_came_later) {
  write(key(attempt), "old\n");
  world.clock.advance(10min);
  const Timestamp later = world.clock.now();
  write(key(attempt), "new\n");
  LogQuery query;
  query.since = later;
  EXPECT_EQ(all(query), "new\n");
  query.since = later + 1h;
  EXPECT_EQ(all(query), "");
}

TEST_F(LogsTest, a_read_without_follow_ends_where_the_log_ended_when_it_was_opened) {
  write(key(attempt), "one\n");
  const auto reader = open({});
  write(key(attempt), "two\n");
  EXPECT_EQ(drain(*reader), "one\n");
}

TEST_F(LogsTest, a_follower_sees_every_line_over_attempts_until_the_job_ends) {
  LogQuery query;
  query.follow = true;
  const auto reader = open(query);
  std::atomic<int> woken = 0;
  reader->set_waker([&] { ++woken; });
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "");

  const auto expect_wake = [&](int before) { EXPECT_GT(woken.load(), before) << "nobody would call next()"; };
  int before = woken;
  write(key(attempt), "one\n");
  expect_wake(before);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "one\n");
  before = woken;
  write(key(attempt), "two\n");
  expect_wake(before);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "two\n");

  before = woken;
  end_attempt(attempt);
  expect_wake(before);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "");
  const model::Attempt second = world.attempt_of(job, 2);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "");
  before = woken;
  write(key(second), "three\n");
  expect_wake(before);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "three\n");

  ASSERT_TRUE(world.logs->mark_ended(key(second)));
  model::Attempt ended = second;
  end_attempt(ended);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "");
  before = woken;
  world.force(job.id, model::JobState::failed);
  expect_wake(before);
  EXPECT_EQ(drain(*reader), "");
}

TEST_F(LogsTest, a_wake_before_the_waker_is_set_is_not_lost) {
  LogQuery query;
  query.follow = true;
  const auto reader = open(query);
  EXPECT_EQ(drain(*reader, LogReader::State::pending), "");
  write(key(attempt), "x\n");
  int woken = 0;
  reader->set_waker([&] { ++woken; });
  EXPECT_EQ(woken, 1);
}

TEST_F(LogsTest, a_follower_of_an_ended_job_reads_it_all_and_ends) {
  write(key(attempt), "done\n");
  end_attempt(attempt);
  world.force(job.id, model::JobState::failed);
  LogQuery query;
  query.follow = true;
  EXPECT_EQ(all(query), "done\n");
  ASSERT_TRUE(world.logs->seal(attempt.id));
  EXPECT_EQ(all(query), "done\n") << "sealed logs read the same";
}

TEST_F(LogsTest, an_unknown_job_is_not_found) {
  EXPECT_EQ(logs.open(JobId("j-x"), {}).error().code(), ErrorCode::not_found);
  EXPECT_EQ(logs.streams(JobId("j-x")).error().code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace helio::service
