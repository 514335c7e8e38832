#include "base/log.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace helio::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::Signal;
using ::testing::StartsWith;
using testing::TempDir;
using testing::TestServer;

const std::string kHost = "Host: x\r\n";

std::string get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\n" + kHost + more + "\r\n";
}

/// Routes that the tests below share.
Router basic_routes() {
  Router router;
  router.add("GET", "/hello", {}, [](Request&) { return Response::text(200, "hello"); });
  router.add("POST", "/echo", {.body_limit = 1000}, [](Request& r) { return Response::text(200, r.body); });
  router.add("GET", "/show/{name}", {}, [](Request& r) {
    return Response::text(
        200, r.method + "|" + r.path + "|" + r.params.at("name") + "|" + r.query["q"] + "|" + std::string(r.header("x-h").value_or("-")));
  });
  router.add("GET", "/throws", {}, [](Request&) -> Response { throw std::runtime_error("secret detail"); });
  router.add("DELETE", "/gone", {},
             [](Request&) { return Response{.status = 204, .headers = {}, .body = "x", .shared_body = {}, .source = {}}; });
  router.add("GET", "/split", {}, [](Request& r) {
    Response response = Response::text(200, "x");
    response.headers.emplace_back("X-Name", r.query["v"]);
    return response;
  });
  router.add_websocket("/ws", [](Request&) { return WsAccept{}; });
  return router;
}

TEST(Server, answers_and_keeps_the_connection) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(get("/hello")));
    const std::string response = client.read_response();
    EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
    EXPECT_THAT(response, HasSubstr("Content-Length: 5\r\n\r\nhello"));
    EXPECT_THAT(response, Not(HasSubstr("Connection: close")));
  }
  EXPECT_EQ(it.server.connections(), 1U);
}

TEST(Server, request_parts_reach_the_handler) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send(get("/show/a%2Fb?q=1+2", "X-H: v\r\n"));
  EXPECT_THAT(client.read_response(), HasSubstr("GET|/show/a/b|a/b|1 2|v"));
}

TEST(Server, pipelined_requests_are_answered_in_order) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\n\r\none" + get("/hello") + "POST /echo HTTP/1.1\r\n" + kHost +
              "Transfer-Encoding: chunked\r\n\r\n2\r\ntw\r\n1;x=y\r\no\r\n0\r\nTrailer: t\r\n\r\n" + get("/show/z"));
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\none"));
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\nhello"));
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\ntwo"));
  EXPECT_THAT(client.read_response(), HasSubstr("GET|/show/z"));
}

TEST(Server, a_request_may_come_byte_by_byte) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  const std::string request = "\r\nPOST /echo HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (const char c : request) ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\nhello"));
}

TEST(Server, head_has_the_length_but_no_body) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("HEAD /hello HTTP/1.1\r\n" + kHost + "\r\n" + get("/show/next"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 5"));
  EXPECT_THAT(client.read_until("next"), StartsWith("HTTP/1.1 200"));
}

TEST(Server, no_content_has_neither_body_nor_length) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("DELETE /gone HTTP/1.1\r\n" + kHost + "\r\n" + get("/hello"));
  EXPECT_THAT(client.read_until("\r\n\r\n"), Not(HasSubstr("Content-Length")));
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200"));
}

TEST(Server, http10_closes_unless_asked) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("\r\n\r\nhello"));
  EXPECT_TRUE(client.closed());
  RawClient keeper(it.server.port());
  keeper.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(keeper.read_response(), HasSubstr("Connection: keep-alive"));
  keeper.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_THAT(keeper.read_response(), HasSubstr("hello"));
}

struct Refusal {
  const char* name;
  std::string request;
  int status;
  const char* code;
  bool stays;  // the connection can go on
};

class ServerRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ServerRefuses, as_problem) {
  TestServer it(basic_routes(), {.header_limit = 4096});
  RawClient client(it.server.port());
  client.send(GetParam().request);
  const std::string response = client.read_response();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 " + std::to_string(GetParam().status))) << response;
  EXPECT_THAT(response, HasSubstr("Content-Type: application/problem+json"));
  EXPECT_THAT(response, HasSubstr(std::string("\"code\":\"") + GetParam().code + "\""));
  if (GetParam().stays) {
    client.send(get("/hello"));
    EXPECT_THAT(client.read_response(), HasSubstr("hello"));
  } else {
    EXPECT_THAT(response, HasSubstr("Connection: close"));
    client.read_all();
    EXPECT_TRUE(client.closed());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ServerRefuses,
    ::testing::Values(
        Refusal{"unknown_path", get("/nothing"), 404, "not_found", true},
        Refusal{"wrong_method", "PUT /hello HTTP/1.1\r\n" + kHost + "\r\n", 405, "unimplemented", true},
        Refusal{"wrong_method_with_body", "PUT /hello HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\n\r\nabc", 405, "unimplemented", false},
        Refusal{"websocket_without_upgrade", get("/ws"), 426, "invalid_argument", true},
        Refusal{"gigabyte_body", "POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 1073741824\r\n\r\n", 413, "resource_exhausted",
                false},
        Refusal{"huge_length", "POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 99999999999999999999\r\n\r\n", 400, "invalid_argument",
                false},
        Refusal{"negative_length", "POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: -1\r\n\r\n", 400, "invalid_argument", false},
        Refusal{"long_chunks", "POST /echo HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\nx", 413,
                "resource_exhausted", false},
        Refusal{"bad_chunk", "POST /echo HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\nzz\r\nx", 400, "invalid_argument",
                false},
        Refusal{"large_head", get("/hello", "X: " + std::string(8000, 'a') + "\r\n"), 431, "resource_exhausted", false},
        Refusal{"long_target", "GET /" + std::string(8000, 'a'), 431, "resource_exhausted", false},
        Refusal{"length_and_chunked",
                "POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
                "invalid_argument", false},
        Refusal{"chunked_and_length",
                "POST /echo HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400,
                "invalid_argument", false},
        Refusal{"two_lengths", "POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400,
                "invalid_argument", false},
        Refusal{"gzip_coding", "POST /echo HTTP/1.1\r\n" + kHost + "Transfer-Encoding: gzip\r\n\r\n", 400, "invalid_argument", false},
        Refusal{"chunked_not_last", "POST /echo HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked, gzip\r\n\r\n", 400, "invalid_argument",
                false},
        Refusal{"chunked_in_http10", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_argument", false},
        Refusal{"space_before_colon", get("/hello", "Content-Length : 3\r\n"), 400, "invalid_argument", false},
        Refusal{"no_host", "GET /hello HTTP/1.1\r\n\r\n", 400, "invalid_argument", false},
        Refusal{"two_hosts", get("/hello", "Host: y\r\n"), 400, "invalid_argument", false},
        Refusal{"garbage", "\x16\x03\x01\x02 hello\r\n\r\n", 400, "invalid_argument", false},
        Refusal{"bad_version", "GET /hello HTTP/3.0\r\n\r\n", 400, "invalid_argument", false},
        Refusal{"bad_escape", get("/hello%zz"), 400, "invalid_argument", true},
        Refusal{"dot_segments", get("/a/../hello"), 400, "invalid_argument", true},
        Refusal{"asterisk", "OPTIONS * HTTP/1.1\r\n" + kHost + "\r\n", 400, "invalid_argument", true}),
    [](const auto& param) { return param.param.name; });

TEST(Server, wrong_method_is_told_the_right_ones) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("PUT /hello HTTP/1.1\r\n" + kHost + "\r\n");
  EXPECT_THAT(client.read_response(), HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST(Server, header_fields_one_at_a_time_are_limited_too) {
  TestServer it(basic_routes(), {.header_limit = 4096});
  RawClient client(it.server.port());
  client.send("GET /hello HTTP/1.1\r\n");
  // The server may have answered and closed at any point after 4 KiB.
  for (int i = 0; i < 10'000 && client.send("A: b\r\n"); ++i) {
  }
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 431"));
}

TEST(Server, a_gigabyte_is_refused_while_the_client_still_sends) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 1073741824\r\n\r\n");
  std::thread sender([&] {
    const std::string block(1U << 20U, 'x');
    for (int i = 0; i < 64 && client.send(block); ++i) {
    }
  });
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  sender.join();
}

TEST(Server, expect_continue_is_answered_only_for_welcome_bodies) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send("POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hello");
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\nhello"));
  client.send("POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 413"));
}

TEST(Server, a_handler_that_throws_is_a_500_without_details) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  const long errors = log::errors_logged();
  client.send(get("/throws"));
  const std::string response = client.read_response();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(response, Not(HasSubstr("secret")));
  EXPECT_EQ(log::errors_logged(), errors + 1);
  client.send(get("/hello"));
  EXPECT_THAT(client.read_response(), HasSubstr("hello"));
}

TEST(Server, a_header_cannot_split_the_response) {
  TestServer it(basic_routes());
  RawClient client(it.server.port());
  client.send(get("/split?v=a%0d%0aX-Evil:%20b"));
  const std::string response = client.read_response();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(response, Not(HasSubstr("X-Evil")));
}

TEST(Server, slow_heads_get_408) {
  TestServer it(basic_routes(), {.header_deadline = 100ms});
  RawClient client(it.server.port());
  client.send("GET /hello HT");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 408"));
  EXPECT_TRUE(client.closed());
}

TEST(Server, drips_do_not_extend_the_head_deadline) {
  TestServer it(basic_routes(), {.header_deadline = 150ms});
  RawClient client(it.server.port());
  client.send("GET /hello HTTP/1.1\r\n");
  std::string answer;
  const auto begin = std::chrono::steady_clock::now();
  while (answer.empty() && std::chrono::steady_clock::now() - begin < 10s) {
    client.send("A");
    answer = client.read_until("\r\n\r\n", std::chrono::milliseconds(20));
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408"));
}

TEST(Server, slow_bodies_get_408) {
  TestServer it(basic_routes(), {.body_deadline = 100ms});
  RawClient client(it.server.port());
  client.send("POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 10\r\n\r\nabc");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 408"));
}

TEST(Server, idle_connections_are_closed_silently) {
  TestServer it(basic_routes(), {.idle_deadline = 100ms});
  RawClient client(it.server.port());
  client.send(get("/hello"));
  EXPECT_THAT(client.read_response(), HasSubstr("hello"));
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.closed());
}

TEST(Server, a_peer_that_does_not_read_is_dropped) {
  Router router;
  const auto big = std::make_shared<const std::string>(64U << 20U, 'x');
  router.add("GET", "/big", {}, [big](Request&) {
    Response response;
    response.shared_body = big;
    return response;
  });
  TestServer it(std::move(router), {.write_deadline = 200ms});
  RawClient client(it.server.port());
  client.send(get("/big"));
  pollfd answer{client.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&answer, 1, 20'000), 1);
  Signal never;
  const auto begin = std::chrono::steady_clock::now();
  while (it.server.connections() > 0 && std::chrono::steady_clock::now() - begin < 10s) {
    static_cast<void>(never.until([] { return false; }, std::chrono::milliseconds(5)));
  }
  EXPECT_EQ(it.server.connections(), 0U);
  EXPECT_LT(client.read_all().size(), big->size());
}

TEST(Server, too_many_connections_get_503) {
  TestServer it(basic_routes(), {.max_connections = 2});
  RawClient one(it.server.port());
  RawClient two(it.server.port());
  one.send(get("/hello"));
  two.send(get("/hello"));
  EXPECT_THAT(one.read_response(), HasSubstr("hello"));
  EXPECT_THAT(two.read_response(), HasSubstr("hello"));
  RawClient three(it.server.port());
  EXPECT_THAT(three.read_all(), StartsWith("HTTP/1.1 503"));
}

TEST(Server, a_full_pool_is_a_503_and_the_connection_goes_on) {
  TestServer it(basic_routes(), {}, 1, 0);  // a queue that is always full
  RawClient client(it.server.port());
  client.send(get("/hello"));
  const std::string response = client.read_response();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(response, HasSubstr("Retry-After: 1"));
  client.send(get("/hello"));
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 503"));
}

TEST(Server, spooled_bodies_come_as_a_file_that_is_gone_afterwards) {
  TempDir dir;
  std::string seen;
  Router router;
  router.add("PUT", "/upload", {.body_limit = 64U << 20U, .spool = true}, [&](Request& r) {
    seen = r.body_file;
    std::ifstream file(r.body_file);
    std::stringstream content;
    content << file.rdbuf();
    return Response::text(200, std::to_string(content.str().size()) + "/" + std::to_string(r.body.size()));
  });
  TestServer it(std::move(router), {.spool_dir = dir.path()});
  RawClient client(it.server.port());
  client.send("PUT /upload HTTP/1.1\r\n" + kHost + "Content-Length: 3000000\r\n\r\n" + std::string(3'000'000, 'u'));
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\n3000000/0"));
  client.send("PUT /upload HTTP/1.1\r\n" + kHost + "Content-Length: 0\r\n\r\n");
  EXPECT_THAT(client.read_response(), HasSubstr("\r\n\r\n0/0"));
  EXPECT_THAT(seen, StartsWith(dir.path()));
  it.server.stop();
  EXPECT_NE(::access(seen.c_str(), F_OK), 0);
}

TEST(Server, a_folder_that_cannot_hold_the_body_is_an_error_of_the_server) {
  Router router;
  router.add("PUT", "/upload", {.body_limit = 1U << 20U, .spool = true}, [](Request&) { return Response::text(200, "x"); });
  TestServer it(std::move(router), {.spool_dir = "/nonexistent"});
  RawClient client(it.server.port());
  client.send("PUT /upload HTTP/1.1\r\n" + kHost + "Content-Length: 1\r\n\r\nx");
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 500"));
}

TEST(Server, admission_comes_before_the_body) {
  Router router;
  RouteOptions options{.body_limit = 1U << 30U, .spool = true, .admit = {}};
  options.admit = [](Request& r) -> std::optional<Response> {
    if (r.header("authorization") == "Bearer good") return std::nullopt;
    return problem(Error(ErrorCode::unauthenticated, "no token"));
  };
  router.add("PUT", "/upload", std::move(options), [](Request&) { return Response::text(200, "stored"); });
  TestServer it(std::move(router));
  RawClient client(it.server.port());
  client.send("PUT /upload HTTP/1.1\r\n" + kHost + "Content-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 401"));
  RawClient good(it.server.port());
  good.send("PUT /upload HTTP/1.1\r\n" + kHost + "Authorization: Bearer good\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_THAT(good.read_response(), HasSubstr("stored"));
}

TEST(Server, two_hundred_connections_at_once) {
  TestServer it(basic_routes());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<RawClient>(it.server.port()));
    ASSERT_TRUE(clients.back()->connected());
  }
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < clients.size(); ++i) clients[i]->send(get("/show/n" + std::to_string(i)));
    for (std::size_t i = 0; i < clients.size(); ++i) {
      EXPECT_THAT(clients[i]->read_response(), HasSubstr("|n" + std::to_string(i) + "|"));
    }
  }
  EXPECT_EQ(it.server.connections(), 200U);
}

TEST(Server, stop_is_quick_with_open_connections) {
  TestServer it(basic_routes());
  RawClient idle(it.server.port());
  RawClient half(it.server.port());
  RawClient used(it.server.port());
  half.send("POST /echo HTTP/1.1\r\n" + kHost + "Content-Length: 10\r\n\r\nabc");
  used.send(get("/hello"));
  EXPECT_THAT(used.read_response(), HasSubstr("hello"));
  const auto begin = std::chrono::steady_clock::now();
  it.server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(it.server.connections(), 0U);
  EXPECT_EQ(used.read_all(), "");
  EXPECT_TRUE(used.closed());
  RawClient late(it.server.port());
  EXPECT_FALSE(late.connected());
}

TEST(Server, stop_waits_for_a_running_handler) {
  Signal running;
  Signal release;
  std::atomic<bool> finished{false};
  Router router;
  router.add("GET", "/block", {}, [&](Request&) {
    running.set();
    EXPECT_TRUE(release.wait());
    finished = true;
    return Response::text(200, "x");
  });
  TestServer it(std::move(router));
  RawClient client(it.server.port());
  client.send(get("/block"));
  ASSERT_TRUE(running.wait());
  std::thread releaser([&] { release.set(); });
  it.server.stop();
  EXPECT_TRUE(finished);
  releaser.join();
}

TEST(Server, a_taken_port_is_unavailable) {
  TestServer it(basic_routes());
  Server second(it.loop, it.pool, basic_routes(), {.port = it.server.port()});
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::unavailable);
}

}  // namespace
}  // namespace helio::net
