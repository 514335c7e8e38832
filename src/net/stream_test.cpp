// Responses from a BodySource.

#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <deque>
#include <thread>

namespace helio::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::Signal;
using ::testing::StartsWith;
using testing::TestServer;

const std::string kGet = "GET /s HTTP/1.1\r\nHost: x\r\n\r\n";

/// A feed that a test fills from its own thread.
struct Feed {
  std::mutex mutex;
  std::deque<std::string> lines;
  bool ended = false;
  bool throws = false;
  bool fails = false;
  std::function<void()> waker;
  std::atomic<bool> source_gone{false};

  void add(std::string line) {
    std::function<void()> wake;
    {
      const std::scoped_lock lock(mutex);
      lines.push_back(std::move(line));
      wake = waker;
    }
    if (wake) wake();
  }
  void end() {
    std::function<void()> wake;
    {
      const std::scoped_lock lock(mutex);
      ended = true;
      wake = waker;
    }
    if (wake) wake();
  }
};

class FeedSource final : public BodySource {
 public:
  explicit FeedSource(std::shared_ptr<Feed> feed) : feed_(std::move(feed)) {}
  ~FeedSource() override { feed_->source_gone = true; }
  Piece next() override {
    const std::scoped_lock lock(feed_->mutex);
    if (feed_->fails) return {Piece::Kind::failed, {}};
    if (feed_->throws) throw std::runtime_error("disk on fire");
    if (!feed_->lines.empty()) {
      Piece piece{Piece::Kind::data, std::move(feed_->lines.front())};
      feed_->lines.pop_front();
      return piece;
    }
    return {feed_->ended ? Piece::Kind::end : Piece::Kind::pending, {}};
  }
  void set_waker(std::function<void()> waker) override {
    const std::scoped_lock lock(feed_->mutex);
    feed_->waker = std::move(waker);
  }
  std::string keep_alive() override { return ": still here\n"; }

 private:
  std::shared_ptr<Feed> feed_;
};

Router feed_routes(const std::shared_ptr<Feed>& feed) {
  Router router;
  router.add("GET", "/s", {}, [feed](Request&) {
    Response response = Response::text(200, "");
    response.source = std::make_unique<FeedSource>(feed);
    return response;
  });
  router.add("GET", "/hello", {}, [](Request&) { return Response::text(200, "hello"); });
  return router;
}

bool eventually(const std::function<bool()>& condition) {
  Signal never;
  return never.until(condition, std::chrono::milliseconds(1)) || [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (never.until(condition, std::chrono::milliseconds(2))) return true;
    }
    return false;
  }();
}

TEST(Stream, pieces_arrive_as_they_are_made_and_the_connection_goes_on) {
  const auto feed = std::make_shared<Feed>();
  TestServer it(feed_routes(feed));
  RawClient client(it.server.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  feed->add("first");
  EXPECT_EQ(client.read_until("first\r\n"), "5\r\nfirst\r\n");
  std::thread other([&] {
    feed->add("second");
    feed->end();
  });
  EXPECT_THAT(client.read_until("0\r\n\r\n"), StartsWith("6\r\nsecond\r\n"));
  other.join();
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_response(), EndsWith("hello"));
  EXPECT_TRUE(feed->source_gone);
}

TEST(Stream, a_source_that_is_ready_goes_out_as_one_chunk) {
  const auto feed = std::make_shared<Feed>();
  for (int i = 0; i < 10; ++i) feed->add("x");
  feed->end();
  TestServer it(feed_routes(feed));
  RawClient client(it.server.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("0\r\n\r\n"), EndsWith("\r\n\r\na\r\nxxxxxxxxxx\r\n0\r\n\r\n"));
}

TEST(Stream, wakers_in_a_storm_lose_nothing) {
  const auto feed = std::make_shared<Feed>();
  TestServer it(feed_routes(feed));
  RawClient client(it.server.port());
  client.send(kGet);
  constexpr int kThreads = 4;
  constexpr int kLines = 2'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&feed] {
      for (int i = 0; i < kLines; ++i) feed->add("line\n");
    });
  }
  for (auto& thread : threads) thread.join();
  feed->end();
  const std::string all = client.read_until("0\r\n\r\n");
  std::size_t lines = 0;
  for (std::size_t at = all.find("line\n"); at != std::string::npos; at = all.find("line\n", at + 1)) ++lines;
  EXPECT_EQ(lines, std::size_t{kThreads} * kLines);
}

TEST(Stream, silence_is_filled_with_the_keep_alive_text) {
  const auto feed = std::make_shared<Feed>();
  TestServer it(feed_routes(feed), {.keep_alive_interval = 50ms});
  RawClient client(it.server.port());
  client.send(kGet);
  client.read_until("\r\n\r\n");
  EXPECT_EQ(client.read_until("here\n\r\n"), "d\r\n: still here\n\r\n");
  EXPECT_EQ(client.read_until("here\n\r\n"), "d\r\n: still here\n\r\n");
}

TEST(Stream, useless_wakes_do_not_put_off_the_keep_alive_text) {
  const auto feed = std::make_shared<Feed>();
  TestServer it(feed_routes(feed), {.keep_alive_interval = 100ms});
  RawClient client(it.server.port());
  client.send(kGet);
  client.read_until("\r\n\r\n");
  std::atomic<bool> stop{false};
  Signal never;
  std::thread waker([&] {
    while (!stop) {
      feed->waker();
      static_cast<void>(never.until([] { return false; }, std::chrono::milliseconds(5)));
    }
  });
  EXPECT_EQ(client.read_until("here\n\r\n"), "d\r\n: still here\n\r\n");
  stop = true;
  waker.join();
}

TEST(Stream, a_client_that_leaves_frees_the_source_and_wakers_stay_harmless) {
  const auto feed = std::make_shared<Feed>();
  {
    TestServer it(feed_routes(feed));
    RawClient client(it.server.port());
    client.send(kGet);
    client.read_until("\r\n\r\n");
    client.close();
    EXPECT_TRUE(eventually([&] { return feed->source_gone.load(); }));
    EXPECT_TRUE(eventually([&] { return it.server.connections() == 0; }));
    feed->waker();
  }
  feed->waker();  // after the server and its loop are gone
}

TEST(Stream, a_source_that_fails_cuts_the_body_short) {
  for (bool Feed::* how : {&Feed::throws, &Feed::fails}) {
    const auto feed = std::make_shared<Feed>();
    TestServer it(feed_routes(feed));
    RawClient client(it.server.port());
    client.send(kGet);
    client.read_until("\r\n\r\n");
    {
      const std::scoped_lock lock(feed->mutex);
      (*feed).*how = true;
    }
    feed->waker();
    EXPECT_THAT(client.read_all(), Not(HasSubstr("0\r\n\r\n")));
    EXPECT_TRUE(client.closed());
  }
}

TEST(Stream, head_asks_for_no_piece) {
  const auto feed = std::make_shared<Feed>();
  feed->add("x");
  TestServer it(feed_routes(feed));
  RawClient client(it.server.port());
  client.send("HEAD /s HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(client.read_response(), EndsWith("hello"));
  EXPECT_EQ(feed->lines.size(), 1U);
}

TEST(Stream, http10_gets_it_without_chunks) {
  const auto feed = std::make_shared<Feed>();
  feed->add("plain");
  feed->end();
  TestServer it(feed_routes(feed));
  RawClient client(it.server.port());
  client.send("GET /s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string all = client.read_all();
  EXPECT_THAT(all, EndsWith("\r\n\r\nplain"));
  EXPECT_THAT(all, Not(HasSubstr("chunked")));
}

TEST(Stream, stop_ends_waiting_streams) {
  const auto feed = std::make_shared<Feed>();
  TestServer it(feed_routes(feed));
  RawClient client(it.server.port());
  client.send(kGet);
  client.read_until("\r\n\r\n");
  const auto begin = std::chrono::steady_clock::now();
  it.server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_TRUE(feed->source_gone);
}

}  // namespace
}  // namespace helio::net
