#include "net/client.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace helio::net {
namespace {

using ::testing::HasSubstr;
using testing::RawClient;
using testing::Signal;
using ::testing::StartsWith;
using testing::TestServer;

/// What a test sees of one side.
struct Side {
  Signal signal;
  std::shared_ptr<WsSession> session;
  std::vector<std::string> texts;
  std::vector<std::string> binaries;
  std::size_t bytes = 0;
  int closes = 0;
  int drained = 0;
  std::optional<Error> why;

  WsHandlers handlers() {
    WsHandlers h;
    h.on_text = [this](std::string_view frame) { signal.change([&] { texts.emplace_back(frame); }); };
    h.on_binary = [this](std::string_view frame) {
      signal.change([&] {
        bytes += frame.size();
        if (frame.size() < 100) binaries.emplace_back(frame);
      });
    };
    h.on_drained = [this] { signal.change([&] { ++drained; }); };
    h.on_close = [this](const Error& error) {
      signal.change([&] {
        ++closes;
        why = error;
      });
    };
    return h;
  }
  void opened(std::shared_ptr<WsSession> s) {
    signal.change([&] { session = std::move(s); });
  }
  bool is_open() {
    return signal.until([this] { return session != nullptr; });
  }
  bool is_closed() {
    return signal.until([this] { return closes > 0; });
  }
};

class WebsocketTest : public ::testing::Test {
 protected:
  WebsocketTest() {
    Router router;
    router.add_websocket("/ws/{name}", [this](Request& request) {
      WsAccept accept;
      name_ = request.params.at("name");
      token_ = std::string(request.header("authorization").value_or(""));
      if (name_ == "refuse") {
        accept.refuse = problem(Error(ErrorCode::unauthenticated, "no token"));
      } else if (name_ == "echo") {
        accept.open = [](const std::shared_ptr<WsSession>& session) {
          const std::weak_ptr<WsSession> weak = session;
          WsHandlers handlers;
          handlers.on_text = [weak](std::string_view frame) {
            if (const auto s = weak.lock()) s->send_text(std::string(frame));
          };
          handlers.on_binary = [weak](std::string_view frame) {
            if (const auto s = weak.lock()) s->send_binary(std::string(frame));
          };
          return handlers;
        };
      } else {
        accept.cut_on_stop = name_ == "cut";
        accept.open = [this](std::shared_ptr<WsSession> session) {
          server_.opened(std::move(session));
          return server_.handlers();
        };
      }
      return accept;
    });
    it_.emplace(std::move(router));
    loop_.start();
  }
  ~WebsocketTest() override {
    it_->server.stop();
    loop_.stop();
  }

  std::shared_ptr<WsSession> connect(Side& side, const std::string& path, Duration deadline = 10s) {
    return ws_connect(
        loop_, "ws://127.0.0.1:" + std::to_string(it_->server.port()) + path, {{"Authorization", "Bearer t"}}, deadline,
        [&side](std::shared_ptr<WsSession> session) { side.opened(std::move(session)); }, side.handlers());
  }

  std::string name_;
  std::string token_;
  Side server_;
  Side client_;
  rt::EventLoop loop_;
  std::optional<TestServer> it_;
};

TEST_F(WebsocketTest, frames_go_both_ways) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  EXPECT_EQ(name_, "plain");
  EXPECT_EQ(token_, "Bearer t");
  EXPECT_TRUE(client_.session->send_text("hello"));
  EXPECT_TRUE(client_.session->send_binary(std::string("\0\1", 2)));
  EXPECT_TRUE(server_.session->send_text(""));
  EXPECT_TRUE(server_.signal.until([&] { return server_.texts.size() == 1 && server_.binaries.size() == 1; }));
  EXPECT_TRUE(client_.signal.until([&] { return client_.texts.size() == 1; }));
  EXPECT_EQ(server_.texts[0], "hello");
  EXPECT_EQ(server_.binaries[0], std::string("\0\1", 2));
  EXPECT_THAT(server_.session->peer(), StartsWith("127.0.0.1:"));
}

TEST_F(WebsocketTest, frames_queued_before_the_handshake_are_sent) {
  const auto session = connect(client_, "/ws/plain");
  EXPECT_TRUE(session->send_text("early"));
  EXPECT_TRUE(server_.signal.until([&] { return server_.texts.size() == 1; }));
}

TEST_F(WebsocketTest, a_refusal_has_the_code_of_its_status) {
  connect(client_, "/ws/refuse");
  ASSERT_TRUE(client_.is_closed());
  EXPECT_EQ(client_.why->code(), ErrorCode::unauthenticated);
  EXPECT_EQ(client_.why->args().at(0).second, "401");
  Side other;
  connect(other, "/nothing");
  ASSERT_TRUE(other.is_closed());
  EXPECT_EQ(other.why->code(), ErrorCode::not_found);
}

TEST_F(WebsocketTest, connecting_fails_plainly) {
  Side refused;
  ws_connect(loop_, "ws://127.0.0.1:1/x", {}, 5s, nullptr, refused.handlers());
  ASSERT_TRUE(refused.is_closed());
  EXPECT_EQ(refused.why->code(), ErrorCode::unavailable);
  Side url;
  ws_connect(loop_, "ftp://x", {}, 5s, nullptr, url.handlers());
  ASSERT_TRUE(url.is_closed());
  EXPECT_EQ(url.why->code(), ErrorCode::invalid_argument);
  Side header;
  ws_connect(loop_, "ws://127.0.0.1:1/x", {{"A", "b\r\nC: d"}}, 5s, nullptr, header.handlers());
  ASSERT_TRUE(header.is_closed());
  EXPECT_EQ(header.why->code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused.closes + url.closes + header.closes, 3);
}

TEST_F(WebsocketTest, a_server_that_never_answers_meets_the_deadline) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  ws_connect(loop_, "ws://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), {}, 100ms, nullptr, client_.handlers());
  ASSERT_TRUE(client_.is_closed());
  EXPECT_EQ(client_.why->code(), ErrorCode::deadline_exceeded);
  ::close(listener);
}

TEST_F(WebsocketTest, closing_is_told_once_on_both_sides_after_all_frames) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  for (int i = 0; i < 100; ++i) client_.session->send_text(std::string(10'000, 'x'));
  client_.session->close(1000, "bye");
  client_.session->close(1000, "again");
  EXPECT_FALSE(client_.session->send_text("late"));
  ASSERT_TRUE(client_.is_closed() && server_.is_closed());
  EXPECT_EQ(server_.texts.size(), 100U);
  EXPECT_EQ(client_.why->code(), ErrorCode::cancelled);
  EXPECT_EQ(server_.why->code(), ErrorCode::unavailable);
  EXPECT_THAT(server_.why->message(), HasSubstr("1000 bye"));
  it_->server.stop();
  loop_.stop();
  EXPECT_EQ(client_.closes, 1);
  EXPECT_EQ(server_.closes, 1);
}

TEST_F(WebsocketTest, the_server_may_close_from_its_handler) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  server_.session->close(1008, "policy");
  ASSERT_TRUE(client_.is_closed() && server_.is_closed());
  EXPECT_EQ(client_.why->args().at(0).second, "1008");
  EXPECT_EQ(server_.why->code(), ErrorCode::cancelled);
}

TEST_F(WebsocketTest, close_before_the_handshake) {
  const auto session = connect(client_, "/ws/plain");
  session->close(1000, "changed my mind");
  ASSERT_TRUE(client_.is_closed());
  EXPECT_EQ(client_.why->code(), ErrorCode::cancelled);
}

TEST_F(WebsocketTest, a_peer_that_vanishes_is_told) {
  RawClient raw(it_->server.port());
  raw.send(
      "GET /ws/plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_THAT(raw.read_until("\r\n\r\n"), HasSubstr("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  ASSERT_TRUE(server_.is_open());
  raw.close();
  ASSERT_TRUE(server_.is_closed());
  EXPECT_EQ(server_.why->code(), ErrorCode::unavailable);
}

TEST_F(WebsocketTest, unmasked_frames_break_the_protocol) {
  RawClient raw(it_->server.port());
  raw.send(
      "GET /ws/plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  raw.read_until("\r\n\r\n");
  raw.send("\x81\x02hi");
  raw.read_until("\x88");
  raw.close();
  ASSERT_TRUE(server_.is_closed());
  EXPECT_EQ(server_.why->code(), ErrorCode::invalid_argument);
}

TEST_F(WebsocketTest, a_message_over_the_limit_closes) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  EXPECT_TRUE(client_.session->send_binary(std::string((1U << 20U) + 1, 'x')));
  ASSERT_TRUE(server_.is_closed() && client_.is_closed());
  EXPECT_EQ(server_.why->code(), ErrorCode::resource_exhausted);
  // Whether the close frame (1009) gets through depends on how much of the message was still to be sent.
  EXPECT_EQ(client_.why->code(), ErrorCode::unavailable);
}

TEST_F(WebsocketTest, clients_take_larger_messages) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  EXPECT_TRUE(server_.session->send_binary(std::string(4U << 20U, 'x')));
  EXPECT_TRUE(client_.signal.until([&] { return client_.bytes == 4U << 20U; }));
}

TEST_F(WebsocketTest, a_peer_that_does_not_read_fills_the_queue_up_to_its_bound) {
  RawClient raw(it_->server.port());
  raw.send(
      "GET /ws/plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  raw.read_until("\r\n\r\n");
  ASSERT_TRUE(server_.is_open());
  const std::string frame(256U << 10U, 'x');
  int sent = 0;
  std::size_t full = 0;
  // Until the kernel takes no more either: then what is queued stands still while the loop has its turns.
  do {
    while (sent < 1000 && server_.session->send_binary(frame)) ++sent;
    full = server_.session->queued();
    for (int turn = 0; turn < 100; ++turn) {
      Signal turned;
      it_->loop.post([&] { turned.set(); });
      ASSERT_TRUE(turned.wait());
    }
  } while (sent < 1000 && server_.session->queued() != full);
  EXPECT_LT(sent, 1000);
  EXPECT_LE(server_.session->queued(), 8U << 20U);
  EXPECT_GT(server_.session->queued(), 7U << 20U);
  const std::size_t before = server_.session->queued();
  EXPECT_FALSE(server_.session->send_binary(frame));
  EXPECT_LE(server_.session->queued(), before);
  // Reading frees it again, and that is told.
  std::thread reader([&] { raw.read_all(std::chrono::seconds(3)); });
  EXPECT_TRUE(server_.signal.until([&] { return server_.drained > 0 && server_.session->queued() == 0; }));
  EXPECT_TRUE(server_.session->send_text("again"));
  server_.session->close(1000, "");
  raw.send(std::string("\x88\x80\0\0\0\0", 6));
  reader.join();
}

TEST_F(WebsocketTest, a_hundred_megabytes_there_and_back) {
  connect(client_, "/ws/echo");
  ASSERT_TRUE(client_.is_open());
  constexpr std::size_t kFrame = 250'000;
  constexpr std::size_t kFrames = 400;
  const std::string frame(kFrame, 'e');
  for (std::size_t i = 0; i < kFrames; ++i) {
    // The echo of the test server drops what it cannot queue, so only a window is under way.
    ASSERT_TRUE(client_.signal.until([&] { return i * kFrame - client_.bytes < 4U << 20U; }));
    ASSERT_TRUE(client_.session->send_binary(frame));
  }
  EXPECT_TRUE(client_.signal.until([&] { return client_.bytes == kFrame * kFrames; }));
}

TEST_F(WebsocketTest, a_session_that_is_cut_sees_no_close_frame) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  server_.session->cut();
  ASSERT_TRUE(client_.is_closed() && server_.is_closed());
  EXPECT_THAT(client_.why->message(), HasSubstr("connection lost"));
  EXPECT_EQ(server_.why->code(), ErrorCode::cancelled);
  EXPECT_FALSE(server_.session->send_text("late"));
  server_.session->cut();
}

TEST_F(WebsocketTest, stop_of_the_server_cuts_those_that_ask_for_it) {
  connect(client_, "/ws/cut");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  it_->server.stop();
  ASSERT_TRUE(client_.is_closed() && server_.is_closed());
  EXPECT_THAT(client_.why->message(), HasSubstr("connection lost"));
}

TEST_F(WebsocketTest, stop_of_the_server_closes_sessions_quickly) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  RawClient raw(it_->server.port());
  raw.send(
      "GET /ws/echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  raw.read_until("\r\n\r\n");
  const auto begin = std::chrono::steady_clock::now();
  it_->server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(it_->server.connections(), 0U);
  EXPECT_EQ(server_.closes, 1);
  ASSERT_TRUE(client_.is_closed());
  EXPECT_EQ(client_.why->args().at(0).second, "1001");
}

TEST_F(WebsocketTest, a_session_may_be_held_for_longer_than_its_loop) {
  std::shared_ptr<WsSession> open;
  std::shared_ptr<WsSession> connecting;
  Side side;
  {
    rt::EventLoop loop;
    loop.start();
    const std::string url = "ws://127.0.0.1:" + std::to_string(it_->server.port()) + "/ws/plain";
    open = ws_connect(loop, url, {}, 5s, [&](std::shared_ptr<WsSession> session) { side.opened(std::move(session)); }, {});
    ASSERT_TRUE(side.is_open());
    loop.stop();
    connecting = ws_connect(loop, url, {}, 5s, nullptr, {});
  }
  for (const auto& session : {open, connecting}) {
    EXPECT_FALSE(session->send_text("too late"));
    session->close(1000, "");
  }
}

TEST_F(WebsocketTest, many_threads_send_and_order_is_kept_per_thread) {
  connect(client_, "/ws/plain");
  ASSERT_TRUE(client_.is_open() && server_.is_open());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) EXPECT_TRUE(client_.session->send_text(std::to_string(t) + ":" + std::to_string(i)));
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(server_.signal.until([&] { return server_.texts.size() == 2000; }));
  std::vector<int> next(4, 0);
  for (const std::string& text : server_.texts) EXPECT_EQ(std::stoi(text.substr(2)), next[static_cast<std::size_t>(text[0] - '0')]++);
}

}  // namespace
}  // namespace helio::net
