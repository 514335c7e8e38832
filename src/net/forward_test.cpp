// Requests that are carried on to another address.

#include "net/client.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
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

std::unique_ptr<Forward> forward_to(std::uint16_t port, const Request& request) {
  auto out = std::make_unique<Forward>();
  out->address = "127.0.0.1";
  out->port = port;
  out->target = request.target.substr(std::string_view("/p").size());
  out->headers = request.headers;
  out->headers.emplace_back("X-Added", "by-us");
  out->add.emplace_back("X-Seen", "yes");
  out->drop = {"set-cookie"};
  out->set.emplace_back("Authorization", "Bearer ours");
  out->location_base = "/p/";
  return out;
}

Response carried(std::uint16_t port, const Request& request) {
  Response out;
  out.forward = forward_to(port, request);
  return out;
}

/// Carries everything below /p on to `port`; /quick/… without asking a worker.
Router proxy(std::uint16_t port) {
  Router router;
  RouteOptions options;
  options.body_limit = 16U << 20U;
  for (const std::string method : {"GET", "POST", "DELETE"}) {
    router.add(method, "/p/{rest...}", options, [port](Request& request) { return carried(port, request); });
  }
  router.add_websocket("/p/{rest...}", [port](Request& request) {
    WsAccept accept;
    accept.forward = forward_to(port, request);
    return accept;
  });
  RouteOptions quick;
  quick.quick = [port](Request& request) -> std::optional<Response> {
    if (request.query.contains("slow")) return std::nullopt;
    request.target = "/p" + request.target.substr(std::string_view("/quick").size());
    return carried(port, request);
  };
  router.add("GET", "/quick/{rest...}", quick, [](Request&) { return Response::text(200, "by the handler"); });
  return router;
}

ServerOptions patient() {
  ServerOptions options;
  options.write_deadline = 20s;
  return options;
}

/// A proxy before a peer that a test plays itself.
struct Scripted {
  RawListener there;
  TestServer front{proxy(there.port()), patient()};
  RawClient client{front.server.port()};
};

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: front\r\n\r\n"; }

TEST(Forward, carries_request_and_answer_but_not_what_is_for_one_hop) {
  Scripted s;
  ASSERT_TRUE(s.client.send(
      "GET /p/a%20b?q=1&q=2 HTTP/1.1\r\nHost: front\r\nAccept: x/y\r\nConnection: X-Hop\r\nX-Hop: mine\r\nTE: trailers\r\n\r\n"));
  const auto peer = s.there.accept();
  const std::string asked = peer->read_until("\r\n\r\n");
  EXPECT_THAT(asked, StartsWith("GET /a%20b?q=1&q=2 HTTP/1.1\r\n"));
  EXPECT_THAT(asked, HasSubstr("Host: 127.0.0.1:" + std::to_string(s.there.port()) + "\r\n"));
  EXPECT_THAT(asked, HasSubstr("Accept: x/y\r\n"));
  EXPECT_THAT(asked, HasSubstr("X-Added: by-us\r\n"));
  for (const char* hop : {"front", "X-Hop", "TE:", "Connection"}) EXPECT_THAT(asked, Not(HasSubstr(hop)));
  ASSERT_TRUE(
      peer->send("HTTP/1.1 418 Teapot\r\nContent-Length: 5\r\nX-Theirs: 1\r\nSet-Cookie: a=b\r\nConnection: keep-alive, X-Hop2\r\nX-Hop2: "
                 "z\r\n\r\nhello"));
  const std::string answer = s.client.read_response();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 418 "));
  EXPECT_THAT(answer, HasSubstr("X-Theirs: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Seen: yes\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello"));
  for (const char* hop : {"Set-Cookie", "X-Hop2", "keep-alive"}) EXPECT_THAT(answer, Not(HasSubstr(hop)));
  // Both connections serve again.
  ASSERT_TRUE(s.client.send("POST /p/again HTTP/1.1\r\nHost: front\r\nContent-Length: 4\r\n\r\nbody"));
  const auto second = s.there.accept();  // what may not be done twice gets a new connection
  EXPECT_THAT(second->read_until("body"), HasSubstr("Content-Length: 4\r\n"));
  ASSERT_TRUE(second->send("HTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_THAT(s.client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 204 "));
}

TEST(Forward, keeps_the_connection_for_the_next_request) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/1")));
  const auto peer = s.there.accept();
  for (const char* body : {"one", "two", "three"}) {
    ASSERT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /"));
    ASSERT_TRUE(
        peer->send(std::string("HTTP/1.1 200 OK\r\nContent-Length: ") + std::to_string(std::string_view(body).size()) + "\r\n\r\n" + body));
    EXPECT_THAT(s.client.read_response(), EndsWith(body));
    ASSERT_TRUE(s.client.send(get("/p/next")));
  }
}

TEST(Forward, a_kept_connection_that_was_closed_is_replaced) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/1")));
  {
    const auto peer = s.there.accept();
    peer->read_until("\r\n\r\n");
    ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    EXPECT_THAT(s.client.read_response(), EndsWith("ok"));
    ASSERT_TRUE(s.client.send(get("/p/2")));
    peer->read_until("\r\n\r\n");  // and closes without a word
  }
  const auto peer = s.there.accept();
  EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /2 "));
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
  EXPECT_THAT(s.client.read_response(), EndsWith("hi"));
}

TEST(Forward, bytes_come_one_by_one_and_after_a_provisional_answer) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/x")));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  const std::string answer =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: "
      "x\r\n\r\n";
  for (const char byte : answer) ASSERT_TRUE(peer->send(std::string(1, byte)));
  const std::string got = s.client.read_until("0\r\n\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, HasSubstr("Transfer-Encoding: chunked\r\n"));
  std::string body;
  for (std::string_view rest = std::string_view(got).substr(got.find("\r\n\r\n") + 4); rest != "0\r\n\r\n";) {
    const std::size_t size = std::stoul(std::string(rest), nullptr, 16);
    rest.remove_prefix(rest.find("\r\n") + 2);
    body += rest.substr(0, size);
    rest.remove_prefix(size + 2);
  }
  EXPECT_EQ(body, "hello world");
}

TEST(Forward, large_bodies_arrive_whole_at_a_slow_reader) {
  Scripted s;
  const int small = 64 << 10;
  ::setsockopt(s.client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  std::string body(3'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + (i / 1000) % 26);
  body.replace(body.size() - 4, 4, "END!");
  ASSERT_TRUE(s.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body));
  const auto peer = s.there.accept();
  const std::string head = peer->read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 3000000\r\n"));
  EXPECT_EQ(peer->read_until("END!"), body);
  std::thread sender([&] { EXPECT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + body)); });
  const std::string answer = s.client.read_response();
  sender.join();
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), body);
}

TEST(Forward, answers_that_have_no_body_or_end_with_the_connection) {
  Scripted s;
  ASSERT_TRUE(s.client.send("HEAD /p/x HTTP/1.1\r\nHost: x\r\n\r\n"));
  auto peer = s.there.accept();
  EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("HEAD /x "));
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"));
  EXPECT_THAT(s.client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 1234\r\n"));
  ASSERT_TRUE(s.client.send(get("/p/y")));
  EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /y "));
  ASSERT_TRUE(peer->send("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"));
  EXPECT_THAT(s.client.read_until("\r\n\r\n"), HasSubstr("ETag: \"1\"\r\n"));
  ASSERT_TRUE(s.client.send(get("/p/z")));
  EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /z "));
  ASSERT_TRUE(peer->send("HTTP/1.0 200 OK\r\n\r\nuntil the end"));
  peer->close();
  EXPECT_THAT(s.client.read_until("0\r\n\r\n"), HasSubstr("until the end"));
}

TEST(Forward, an_http10_client_gets_a_body_without_chunks) {
  Scripted s;
  ASSERT_TRUE(s.client.send("GET /p/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
  const std::string got = s.client.read_all();
  EXPECT_THAT(got, EndsWith("\r\n\r\nabc"));
  EXPECT_THAT(got, Not(HasSubstr("chunked")));
}

TEST(Forward, says_so_when_nobody_is_there) {
  std::uint16_t dead = 0;
  {
    const RawListener gone;
    dead = gone.port();
  }
  TestServer front(proxy(dead));
  RawClient client(front.server.port());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.send(get("/p/x")));
    const std::string answer = client.read_response();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 502 "));
    EXPECT_THAT(answer, HasSubstr("\"code\":\"unavailable\""));
  }
}

TEST(Forward, an_answer_that_breaks_off_does_not_look_whole) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/x")));
  auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
  EXPECT_THAT(s.client.read_until("abc\r\n"), HasSubstr("3\r\nabc"));
  peer->close();
  EXPECT_EQ(s.client.read_all(), "");
  EXPECT_TRUE(s.client.closed());
}

TEST(Forward, nonsense_from_there_is_a_bad_gateway) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/x")));
  auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send("SSH-2.0-OpenSSH_9.2\r\n"));
  peer->close();
  EXPECT_THAT(s.client.read_response(), StartsWith("HTTP/1.1 502 "));
}

TEST(Forward, a_client_that_leaves_ends_the_request_there) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/x")));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  s.client.close();
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_TRUE(peer->closed());
}

TEST(Forward, a_client_that_leaves_is_noticed_whatever_it_sent_before) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/x") + "GET /p/y HT"));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
  s.client.read_until("abc");
  ASSERT_TRUE(s.client.send("TP/1.1"));
  s.client.close();
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_TRUE(peer->closed());
}

TEST(Forward, what_a_client_sends_ahead_is_answered_in_its_turn) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/1") + get("/p/2")));
  const auto peer = s.there.accept();
  EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /1 "));
  ASSERT_TRUE(s.client.send(get("/p/3")));
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"));
  EXPECT_THAT(s.client.read_response(), EndsWith("one"));
  for (const std::string body : {"two", "333"}) {
    EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /"));
    ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + body));
    EXPECT_THAT(s.client.read_response(), EndsWith(body));
  }
}

TEST(Forward, one_that_sends_without_end_meanwhile_is_cut) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/p/x")));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  s.client.send(std::string(4'000'000, 'x'));
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_TRUE(peer->closed());
}

TEST(Forward, strange_answers_are_a_bad_gateway_and_leave_the_connection_clean) {
  for (const std::string status : {"101 Switching Protocols", "000 X", "042 X", "999 X"}) {
    Scripted s;
    ASSERT_TRUE(s.client.send(get("/p/x") + get("/p/y")));
    {
      const auto peer = s.there.accept();
      peer->read_until("\r\n\r\n");
      ASSERT_TRUE(peer->send("HTTP/1.1 " + status + "\r\nContent-Length: 44\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n"));
      EXPECT_THAT(s.client.read_response(), StartsWith("HTTP/1.1 502 ")) << status;
      EXPECT_EQ(peer->read_all(), "") << "it is not used again";
    }
    const auto peer = s.there.accept();
    EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /y ")) << status;
    ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    EXPECT_THAT(s.client.read_response(), EndsWith("ok"));
  }
}

TEST(Forward, an_answer_does_not_lead_elsewhere) {
  Scripted s;
  for (const auto& [theirs, ours] : {std::pair<std::string, std::string>{"/x/y?z", "/p/x/y?z"},
                                     {"//evil/", ""},
                                     {"https://evil/", ""},
                                     {"/../q", ""},
                                     {"/%2e%2e/q", ""},
                                     {"../q", ""},
                                     {"/\\evil", ""}}) {
    ASSERT_TRUE(s.client.send(get("/p/x")));
    const auto peer = s.there.accept();
    peer->read_until("\r\n\r\n");
    ASSERT_TRUE(
        peer->send("HTTP/1.1 307 Temporary Redirect\r\nLocation: " + theirs + "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
    const std::string answer = s.client.read_response();
    if (ours.empty()) {
      EXPECT_THAT(answer, Not(HasSubstr("Location"))) << theirs;
    } else {
      EXPECT_THAT(answer, HasSubstr("Location: " + ours + "\r\n")) << theirs;
    }
  }
}

TEST(Forward, what_we_set_cannot_be_taken_away) {
  Scripted s;
  ASSERT_TRUE(s.client.send("GET /p/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer theirs\r\nConnection: Authorization\r\n\r\n"));
  const std::string asked = s.there.accept()->read_until("\r\n\r\n");
  EXPECT_THAT(asked, HasSubstr("Authorization: Bearer ours\r\n"));
  EXPECT_THAT(asked, Not(HasSubstr("theirs")));
}

TEST(Forward, the_last_chunk_may_come_in_any_pieces) {
  for (const std::string& chunks :
       {std::string("0\r\n\r\n"), std::string("3\r\nabc\r\n0\r\n\r\n"), std::string("3\r\nabc\r\n0;x=1\r\nA: b\r\n\r\n")}) {
    for (std::size_t at = 1; at < chunks.size(); ++at) {
      Scripted s;
      ASSERT_TRUE(s.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks.substr(0, at)));
      for (const char byte : chunks.substr(at)) ASSERT_TRUE(s.client.send(std::string(1, byte)));
      const auto peer = s.there.accept();
      peer->read_until("\r\n\r\n");
      ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks.substr(0, at)));
      for (const char byte : chunks.substr(at)) ASSERT_TRUE(peer->send(std::string(1, byte)));
      EXPECT_THAT(s.client.read_until("0\r\n\r\n"), EndsWith("0\r\n\r\n")) << chunks << " " << at;
    }
  }
}

TEST(Forward, a_short_chunk_is_passed_on_at_once) {
  for (const std::string body : {"x\n", "0\n", "0", "00\r\n"}) {
    Scripted s;
    ASSERT_TRUE(s.client.send(get("/p/x")));
    const auto peer = s.there.accept();
    peer->read_until("\r\n\r\n");
    const std::string chunk = std::to_string(body.size()) + "\r\n" + body + "\r\n";
    ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk));
    EXPECT_THAT(s.client.read_until("\r\n\r\n" + chunk), EndsWith(chunk)) << "though no more comes for now";
    ASSERT_TRUE(peer->send(chunk));
    EXPECT_THAT(s.client.read_until(chunk), EndsWith(chunk));
  }
}

TEST(Forward, a_body_has_one_coding) {
  for (const std::string coding : {"gzip, chunked", "chunked, chunked", "gzip"}) {
    Scripted s;
    ASSERT_TRUE(s.client.send("POST /p/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + coding + "\r\n\r\n0\r\n\r\n"));
    EXPECT_THAT(s.client.read_response(), StartsWith("HTTP/1.1 400 ")) << coding;
  }
}

TEST(Forward, the_server_stops_in_the_middle) {
  const RawListener there;
  auto front = std::make_unique<TestServer>(proxy(there.port()));
  RawClient client(front->server.port());
  ASSERT_TRUE(client.send(get("/p/x")));
  const auto peer = there.accept();
  peer->read_until("\r\n\r\n");
  front->server.stop();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_TRUE(client.closed() && peer->closed());
}

TEST(Forward, a_quick_answer_asks_no_worker) {
  Scripted s;
  ASSERT_TRUE(s.client.send(get("/quick/x")));
  const auto peer = s.there.accept();
  EXPECT_THAT(peer->read_until("\r\n\r\n"), StartsWith("GET /x "));
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  EXPECT_THAT(s.client.read_response(), EndsWith("ok"));
  ASSERT_TRUE(s.client.send(get("/quick/x?slow")));
  EXPECT_THAT(s.client.read_response(), EndsWith("by the handler"));
}

// --- tunnels --------------------------------------------------------------------------------------------------------------------

const std::string kUpgrade =
    "GET /p/ws HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n";
const std::string kSwitched =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "
    "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

TEST(Tunnel, is_made_by_an_upgrade_and_carries_every_byte) {
  Scripted s;
  ASSERT_TRUE(s.client.send(kUpgrade));
  const auto peer = s.there.accept();
  const std::string asked = peer->read_until("\r\n\r\n");
  EXPECT_THAT(asked, StartsWith("GET /ws HTTP/1.1\r\n"));
  for (const char* line : {"Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"}) {
    EXPECT_THAT(asked, HasSubstr(line));
  }
  ASSERT_TRUE(peer->send(kSwitched + "at once"));
  const std::string answer = s.client.read_until("at once");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 101 "));
  EXPECT_THAT(answer, HasSubstr("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  ASSERT_TRUE(s.client.send("up"));
  EXPECT_EQ(peer->read_until("up"), "up");
  ASSERT_TRUE(peer->send("down"));
  EXPECT_EQ(s.client.read_until("down"), "down");
  const std::string much(2'000'000, 'm');
  std::thread sender([&] { EXPECT_TRUE(peer->send(much + "!")); });
  EXPECT_EQ(s.client.read_until("!"), much + "!");
  sender.join();
  peer->close();
  EXPECT_EQ(s.client.read_all(), "");
  EXPECT_TRUE(s.client.closed());
}

TEST(Tunnel, what_a_client_says_too_early_is_not_lost) {
  Scripted s;
  ASSERT_TRUE(s.client.send(kUpgrade));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(s.client.send("early"));
  ASSERT_TRUE(peer->send(kSwitched));
  s.client.read_until("\r\n\r\n");
  ASSERT_TRUE(s.client.send(" and late!"));
  EXPECT_EQ(peer->read_until("!"), "early and late!");
}

TEST(Tunnel, a_side_that_has_said_all_still_hears_the_other) {
  Scripted s;
  ASSERT_TRUE(s.client.send(kUpgrade));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send(kSwitched));
  s.client.read_until("\r\n\r\n");
  ::shutdown(s.client.fd(), SHUT_WR);
  EXPECT_EQ(peer->read_all(), "");
  ASSERT_TRUE(peer->send("last word"));
  peer->close();
  EXPECT_EQ(s.client.read_all(), "last word");
}

TEST(Tunnel, only_a_get_can_ask_for_it) {
  Scripted s;
  ASSERT_TRUE(s.client.send("HEAD" + kUpgrade.substr(3)));
  const auto peer = s.there.accept();
  const std::string asked = peer->read_until("\r\n\r\n");
  EXPECT_THAT(asked, StartsWith("HEAD /ws HTTP/1.1\r\n"));
  EXPECT_THAT(asked, Not(HasSubstr("Upgrade: ")));
  ASSERT_TRUE(peer->send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
  EXPECT_THAT(s.client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST(Tunnel, a_refusal_is_passed_on) {
  Scripted s;
  ASSERT_TRUE(s.client.send(kUpgrade));
  const auto peer = s.there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"));
  const std::string answer = s.client.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(answer, EndsWith("no"));
}

TEST(Tunnel, ends_with_the_server) {
  const RawListener there;
  TestServer front(proxy(there.port()));
  RawClient client(front.server.port());
  ASSERT_TRUE(client.send(kUpgrade));
  const auto peer = there.accept();
  peer->read_until("\r\n\r\n");
  ASSERT_TRUE(peer->send(kSwitched));
  client.read_until("\r\n\r\n");
  front.server.stop();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(peer->read_all(), "");
  EXPECT_EQ(front.server.connections(), 0U);
}

}  // namespace
}  // namespace helio::net
