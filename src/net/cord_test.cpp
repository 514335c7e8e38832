// What is cut by its cord ends at once, and so that its client knows that it is not whole; what is beside it goes on.

#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace helio::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::RawListener;
using testing::Signal;
using ::testing::StartsWith;
using testing::TestServer;

/// "begun", and then nothing for ever, or the end.
class Source final : public BodySource {
 public:
  Source(bool ends, std::function<void()> gone) : ends_(ends), gone_(std::move(gone)) {}
  ~Source() override { gone_(); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Piece next() override {
    if (!std::exchange(begun_, true)) return {Piece::Kind::data, "begun"};
    return {ends_ ? Piece::Kind::end : Piece::Kind::pending, {}};
  }
  void set_waker(std::function<void()>) override {}
  std::string keep_alive() override { return "still here"; }

 private:
  bool ends_;
  bool begun_ = false;
  std::function<void()> gone_;
};

class CordTest : public ::testing::Test {
 protected:
  static constexpr Duration kSoon = 1s;

  CordTest() {
    Router router;
    for (const bool ends : {false, true}) {
      router.add("GET", ends ? "/short" : "/stream", {}, [this, ends](Request& request) {
        Response response = Response::text(200, "");
        response.source = std::make_unique<Source>(ends, [this] { sources_gone.change([this] { ++gone; }); });
        response.cord = cord(request.query.at("by"));
        return response;
      });
    }
    router.add("GET", "/p/{rest...}", {}, [this](Request& request) {
      Response response;
      response.forward = forward(request);
      response.cord = cord(request.query.at("by"));
      return response;
    });
    router.add_websocket("/p/{rest...}", [this](Request& request) {
      WsAccept accept;
      accept.forward = forward(request);
      accept.cord = cord(request.query.at("by"));
      return accept;
    });
    router.add_websocket("/ws", [this](Request& request) {
      WsAccept accept;
      accept.cord = cord(request.query.at("by"));
      accept.open = [this, by = request.query.at("by")](std::shared_ptr<WsSession> session) {
        opened.change([&] { sessions[by] = std::move(session); });
        return WsHandlers{};
      };
      return accept;
    });
    ServerOptions options;
    options.keep_alive_interval = 100ms;
    it.emplace(std::move(router), options);
  }
  ~CordTest() override {
    it->server.stop();
    it->pool.stop();  // one of them may be about to open a session
    sessions.clear();
  }

  std::unique_ptr<Forward> forward(const Request& request) const {
    auto out = std::make_unique<Forward>();
    out->address = "127.0.0.1";
    out->port = there.port();
    out->target = request.target;
    return out;
  }
  std::shared_ptr<Cord> cord(const std::string& by) {
    const std::scoped_lock lock(mutex);
    auto& out = cords[by];
    if (!out) out = std::make_shared<Cord>();
    return out;
  }
  static std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"; }
  static std::string upgrade(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  }
  /// What a client still hears after its cord was cut.
  std::string heard_after_cut(const std::string& by, RawClient& client) {
    const auto begin = std::chrono::steady_clock::now();
    cord(by)->cut();
    std::string heard = client.read_all();
    EXPECT_TRUE(client.closed());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
    return heard;
  }

  RawListener there;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Cord>> cords;
  Signal sources_gone;
  int gone = 0;
  Signal opened;
  std::map<std::string, std::shared_ptr<WsSession>> sessions;
  std::optional<TestServer> it;
};

TEST_F(CordTest, a_stream_ends_without_its_last_chunk) {
  RawClient mine(it->server.port());
  RawClient other(it->server.port());
  mine.send(get("/stream?by=a"));
  other.send(get("/stream?by=b"));
  EXPECT_THAT(mine.read_until("begun\r\n"), HasSubstr("chunked"));
  other.read_until("begun\r\n");
  EXPECT_THAT(heard_after_cut("a", mine), Not(HasSubstr("0\r\n\r\n")));
  EXPECT_TRUE(sources_gone.until([this] { return gone == 1; })) << "what made it is let go of";
  EXPECT_THAT(other.read_until("still here\r\n"), EndsWith("still here\r\n"));
  EXPECT_EQ(it->server.connections(), 1U);
}

TEST_F(CordTest, a_websocket_ends_without_a_close_frame) {
  RawClient mine(it->server.port());
  RawClient other(it->server.port());
  mine.send(upgrade("/ws?by=a"));
  other.send(upgrade("/ws?by=b"));
  EXPECT_THAT(mine.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  EXPECT_THAT(other.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  ASSERT_TRUE(opened.until([this] { return sessions.size() == 2; }));
  EXPECT_EQ(heard_after_cut("a", mine), "");
  EXPECT_TRUE(sessions["b"]->send_text("goes on"));
  EXPECT_THAT(other.read_until("goes on"), EndsWith("goes on"));
}

TEST_F(CordTest, a_tunnel_ends_on_both_sides) {
  RawClient mine(it->server.port());
  RawClient other(it->server.port());
  std::vector<std::unique_ptr<RawClient>> peers;
  for (auto* client : {&mine, &other}) {
    client->send(upgrade(client == &mine ? "/p/ws?by=a" : "/p/ws?by=b"));
    peers.push_back(there.accept());
    peers.back()->read_until("\r\n\r\n");
    peers.back()->send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    EXPECT_THAT(client->read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  }
  EXPECT_EQ(heard_after_cut("a", mine), "");
  EXPECT_EQ(peers[0]->read_all(), "");
  EXPECT_TRUE(peers[0]->closed());
  other.send("up");
  EXPECT_EQ(peers[1]->read_until("up"), "up");
  peers[1]->send("down");
  EXPECT_EQ(other.read_until("down"), "down");
}

TEST_F(CordTest, a_request_that_is_carried_on_ends_on_both_sides) {
  for (const bool has_begun : {false, true}) {
    const std::string by = has_begun ? "begun" : "asked";
    RawClient client(it->server.port());
    client.send(get("/p/x?by=" + by));
    const auto peer = there.accept();
    peer->read_until("\r\n\r\n");
    if (has_begun) {
      peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
      client.read_until("abc\r\n");
    }
    EXPECT_EQ(heard_after_cut(by, client), "");
    EXPECT_EQ(peer->read_all(), "");
    EXPECT_TRUE(peer->closed());
  }
}

TEST_F(CordTest, what_is_cut_before_it_begins_does_not_begin) {
  cord("a")->cut();
  for (const std::string& request : {get("/stream?by=a"), get("/p/x?by=a"), upgrade("/p/ws?by=a")}) {
    RawClient client(it->server.port());
    client.send(request);
    EXPECT_EQ(client.read_all(), "");
    EXPECT_TRUE(client.closed());
  }
  RawClient client(it->server.port());
  client.send(upgrade("/ws?by=a"));
  client.read_all();
  EXPECT_TRUE(client.closed());
}

TEST_F(CordTest, what_is_over_is_not_touched) {
  RawClient client(it->server.port());
  client.send(get("/short?by=a"));
  EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr("begun"));
  cord("a")->cut();
  client.send(get("/short?by=b"));
  EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr("begun")) << "the connection serves somebody else by now";
  cord("b")->cut();
  it->server.stop();
  cord("b")->cut();  // after the server
}

TEST_F(CordTest, cuts_may_come_at_any_moment) {
  std::atomic<bool> stop{false};
  std::jthread cutter([&] {
    while (!stop) {
      std::map<std::string, std::shared_ptr<Cord>> now;
      {
        const std::scoped_lock lock(mutex);
        now = cords;
      }
      for (const auto& [by, held] : now) held->cut();
    }
  });
  std::vector<std::jthread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      for (int i = c; i < 200; i += 3) {
        RawClient client(it->server.port());
        client.send(get("/stream?by=" + std::to_string(i)));
        EXPECT_THAT(client.read_all(), Not(HasSubstr("0\r\n\r\n")));
        EXPECT_TRUE(client.closed());
      }
    });
  }
  clients.clear();
  stop = true;
}

}  // namespace
}  // namespace helio::net
