#include "rt/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace helio::rt {
namespace {

using ::testing::ElementsAre;

TEST(EventLoop, posted_functions_run_on_the_loop_in_order) {
  EventLoop loop;
  EXPECT_FALSE(loop.running());
  loop.start();
  EXPECT_TRUE(loop.running());
  EXPECT_FALSE(loop.on_loop());
  std::vector<int> order;
  std::promise<bool> done;
  for (int i = 0; i < 3; ++i) loop.post([&order, i] { order.push_back(i); });
  loop.post([&] { done.set_value(loop.on_loop()); });
  EXPECT_TRUE(done.get_future().get());
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(EventLoop, what_is_posted_before_the_start_runs_after_it) {
  EventLoop loop;
  std::promise<void> ran;
  loop.post([&] { ran.set_value(); });
  loop.start();
  ran.get_future().get();
}

TEST(EventLoop, stop_is_idempotent_and_drops_later_posts) {
  EventLoop loop;
  loop.start();
  loop.stop();
  loop.stop();
  EXPECT_FALSE(loop.running());
  auto held = std::make_shared<int>(1);
  loop.post([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(SerialExecutor, tasks_run_one_after_the_other_in_order) {
  std::vector<int> order;
  {
    SerialExecutor executor("test-serial");
    for (int i = 0; i < 100; ++i) executor.post([&order, i] { order.push_back(i); });
    std::promise<void> done;
    executor.post([&] { done.set_value(); });
    done.get_future().get();
  }
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(SerialExecutor, timers_fire_by_due_time_and_ties_by_creation) {
  SerialExecutor executor("test-serial");
  std::vector<int> order;
  std::promise<void> done;
  executor.post([&] {
    executor.after(30ms, [&] {
      order.push_back(3);
      done.set_value();
    });
    executor.after(10ms, [&] { order.push_back(1); });
    executor.after(20ms, [&] { order.push_back(2); });
    executor.after(0ms, [&] { order.push_back(0); });
  });
  done.get_future().get();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

TEST(SerialExecutor, an_earlier_timer_wakes_a_sleeping_executor) {
  SerialExecutor executor("test-serial");
  executor.after(1h, [] { FAIL(); });
  std::promise<void> done;
  executor.after(1ms, [&] { done.set_value(); });
  EXPECT_EQ(done.get_future().wait_for(20s), std::future_status::ready);
}

TEST(SerialExecutor, a_timer_cancelled_from_a_task_does_not_fire_even_when_due) {
  SerialExecutor executor("test-serial");
  std::promise<void> done;
  bool fired = false;
  executor.post([&] {
    const auto timer = executor.after(0ms, [&] { fired = true; });
    executor.cancel(timer);
    executor.cancel(timer);
    executor.cancel(12345);
    executor.after(1ms, [&] { done.set_value(); });
  });
  done.get_future().get();
  EXPECT_FALSE(fired);
}

TEST(SerialExecutor, stop_runs_what_is_due_and_nothing_else) {
  SerialExecutor executor("test-serial");
  std::promise<void> blocked;
  std::promise<void> release;
  std::atomic<int> ran{0};
  executor.post([&] {
    blocked.set_value();
    release.get_future().get();
  });
  blocked.get_future().get();
  executor.post([&] {
    ++ran;
    executor.post([&] { ran += 100; });  // too late
  });
  executor.after(1h, [&] { ran += 1000; });
  std::thread stopper([&] { executor.stop(); });
  release.set_value();
  stopper.join();
  EXPECT_EQ(ran % 100, 1);
  EXPECT_LT(ran, 1000);
  executor.post([&] { ran = -1; });
  executor.stop();
  EXPECT_GT(ran, 0);
}

TEST(WorkerPool, runs_on_many_threads_and_refuses_over_its_bound) {
  WorkerPool pool(2, 3, "test-pool");
  std::promise<void> release;
  const auto gate = release.get_future().share();
  std::promise<void> busy[2];
  for (auto& b : busy) {
    ASSERT_TRUE(pool.try_post([gate, &b] {
      b.set_value();
      gate.get();
    }));
  }
  for (auto& b : busy) b.get_future().get();
  std::atomic<int> ran{0};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.try_post([&] { ++ran; }));
  EXPECT_FALSE(pool.try_post([&] { ++ran; }));
  release.set_value();
  std::promise<void> done;
  while (!pool.try_post([&] { done.set_value(); })) std::this_thread::yield();
  done.get_future().get();
  pool.stop();
  EXPECT_EQ(ran, 3);
}

TEST(WorkerPool, stop_drops_queued_functions_and_refuses_new_ones) {
  WorkerPool pool(1, 10, "test-pool");
  std::promise<void> busy;
  std::promise<void> release;
  pool.try_post([&] {
    busy.set_value();
    release.get_future().get();
  });
  busy.get_future().get();
  const auto held = std::make_shared<int>(1);
  EXPECT_TRUE(pool.try_post([held] { FAIL(); }));
  std::thread stopper([&] { pool.stop(); });
  while (held.use_count() > 1) std::this_thread::yield();
  release.set_value();
  stopper.join();
  EXPECT_FALSE(pool.try_post([] {}));
}

}  // namespace
}  // namespace helio::rt
