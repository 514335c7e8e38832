#include "net/client.h"
#include "net/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

namespace helio::net {
namespace {

using ::testing::HasSubstr;
using testing::Signal;
using testing::TempDir;
using testing::TestServer;

/// A server that says exactly what a test wants, one script per connection.
class ScriptedServer {
 public:
  using Script = std::function<void(int fd)>;
  explicit ScriptedServer(std::vector<Script> scripts) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, todo = std::move(scripts)] {
      for (const Script& script : todo) {
        const int peer = ::accept(fd_, nullptr, nullptr);
        if (peer < 0) return;
        ++accepted_;
        script(peer);
        ::close(peer);
        closed_.change([this] { ++closes_; });
      }
    });
  }
  ~ScriptedServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int accepted() const { return accepted_; }
  [[nodiscard]] bool has_closed(int connections) {
    return closed_.until([&] { return closes_ >= connections; });
  }

  static std::string read_head(int fd) {
    std::string head;
    char c = 0;
    while (!head.ends_with("\r\n\r\n") && ::recv(fd, &c, 1, 0) == 1) head += c;
    return head;
  }
  static void say(int fd, std::string_view text) { static_cast<void>(::send(fd, text.data(), text.size(), MSG_NOSIGNAL)); }
  static void wait_for_close(int fd) {
    char c = 0;
    while (::recv(fd, &c, 1, 0) > 0) {
    }
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  Signal closed_;
  int closes_ = 0;
  std::thread thread_;
};

std::unique_ptr<HttpClient> client_of(const std::string& url, Headers headers = {}) {
  auto client = HttpClient::create(url, std::move(headers));
  EXPECT_TRUE(client);
  return std::move(*client);
}

Router routes(Signal& release) {
  Router router;
  router.add("GET", "/base/hello", {},
             [](Request& r) { return Response::text(200, "hello " + std::string(r.header("x-token").value_or("-"))); });
  router.add("POST", "/base/echo", {.body_limit = 1U << 20U}, [](Request& r) { return Response::text(201, r.body); });
  router.add("PUT", "/base/upload", {.body_limit = 256U << 20U, .spool = true}, [](Request& r) {
    std::ifstream file(r.body_file, std::ios::binary | std::ios::ate);
    return Response::text(200, std::to_string(file.tellg()));
  });
  router.add("GET", "/base/big", {}, [](Request&) { return Response::text(200, std::string(3'000'000, 'b')); });
  router.add("GET", "/base/block", {}, [&release](Request&) {
    EXPECT_TRUE(release.wait());
    return Response::text(200, "late");
  });
  return router;
}

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : it_(routes(release_), {.idle_deadline = 5s}) {}
  ~ClientTest() override { release_.set(); }
  std::unique_ptr<HttpClient> client(Headers headers = {}) { return client_of(it_.url() + "/base/", std::move(headers)); }

  Signal release_;
  TestServer it_;
};

TEST_F(ClientTest, prefix_headers_and_reuse_of_the_connection) {
  const auto client = this->client({{"X-Token", "default"}});
  for (int i = 0; i < 3; ++i) {
    const auto response = client->send({.target = "/hello"});
    ASSERT_TRUE(response) << response.error().text();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "hello default");
    EXPECT_TRUE(find_header(response->headers, "date"));
  }
  const auto own = client->send({.target = "/hello", .headers = {{"x-token", "own"}}});
  EXPECT_EQ(own->body, "hello own");
  EXPECT_EQ(it_.server.connections(), 1U);
}

TEST_F(ClientTest, methods_bodies_and_statuses) {
  const auto client = this->client();
  EXPECT_EQ(client->send({.method = "POST", .target = "/echo", .body = "abc"})->body, "abc");
  EXPECT_EQ(client->send({.method = "POST", .target = "/echo"})->status, 201);
  const auto head = client->send({.method = "HEAD", .target = "/big"});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(find_header(head->headers, "content-length"), "3000000");
  EXPECT_EQ(client->send({.target = "/nothing"})->status, 404);
  EXPECT_EQ(client->send({.target = "/big"})->body.size(), 3'000'000U);
}

TEST_F(ClientTest, bodies_from_a_file) {
  TempDir dir;
  const std::string path = dir.path() + "/f";
  std::ofstream(path) << std::string(5'000'000, 'f');
  const auto client = this->client();
  const auto response = client->send({.method = "PUT", .target = "/upload", .body_file = path});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->body, "5000000");
  EXPECT_EQ(client->send({.method = "PUT", .target = "/upload", .body_file = dir.path() + "/none"}).error().code(), ErrorCode::not_found);
}

TEST_F(ClientTest, an_early_refusal_is_seen_while_sending) {
  TempDir dir;
  const std::string path = dir.path() + "/f";
  ASSERT_EQ(::truncate(path.c_str(), 0), -1);
  std::ofstream(path) << "";
  ASSERT_EQ(::truncate(path.c_str(), 1LL << 30), 0);
  const auto client = this->client();
  const auto response = client->send({.method = "PUT", .target = "/upload", .body_file = path});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(client->send({.target = "/hello"})->status, 200);
}

TEST_F(ClientTest, a_deadline_holds) {
  const auto client = this->client();
  const auto begin = std::chrono::steady_clock::now();
  const auto response = client->send({.target = "/block", .deadline = 100ms});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::deadline_exceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(client->send({.target = "/hello"})->status, 200);
}

TEST_F(ClientTest, cancel_ends_the_running_call_and_only_that) {
  const auto client = this->client();
  std::thread canceller([&] { client->cancel(); });
  const auto response = client->send({.target = "/block", .deadline = 60s});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::cancelled);
  canceller.join();
  EXPECT_EQ(client->send({.target = "/hello"})->status, 200);
}

TEST_F(ClientTest, many_clients_in_many_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([this] {
      const auto client = this->client();
      for (int i = 0; i < 50; ++i) {
        const std::string body = std::to_string(i);
        const auto response = client->send({.method = "POST", .target = "/echo", .body = body});
        ASSERT_TRUE(response);
        EXPECT_EQ(response->body, body);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(ClientTest, bad_input_is_refused_before_anything_is_sent) {
  const auto client = this->client();
  EXPECT_EQ(client->send({.target = "no-slash"}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(client->send({.target = "/a b"}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(client->send({.method = "GE T", .target = "/"}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(client->send({.target = "/", .headers = {{"A", "b\r\nC: d"}}}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(it_.server.connections(), 0U);
  EXPECT_EQ(HttpClient::create("nonsense").error().code(), ErrorCode::invalid_argument);
}

TEST_F(ClientTest, responses_over_the_limit_are_an_error) {
  const auto client = this->client();
  const auto response = client->send({.target = "/big", .response_limit = 1000});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::resource_exhausted);
  EXPECT_EQ(client->send({.target = "/hello"})->status, 200);
}

TEST_F(ClientTest, stream_hands_out_pieces_and_may_stop) {
  const auto client = this->client();
  std::size_t bytes = 0;
  auto whole = client->stream({.target = "/big"}, [&](std::string_view piece) {
    bytes += piece.size();
    return true;
  });
  ASSERT_TRUE(whole);
  EXPECT_EQ(bytes, 3'000'000U);
  EXPECT_EQ(whole->body, "");
  int pieces = 0;
  EXPECT_EQ(client->stream({.target = "/big"}, [&](std::string_view) { return ++pieces < 2; })->status, 200);
  EXPECT_EQ(pieces, 2);
  // Errors come with their body.
  const auto missing = client->stream({.target = "/nothing"}, [](std::string_view) { return true; });
  EXPECT_EQ(missing->status, 404);
  EXPECT_THAT(missing->body, HasSubstr("not_found"));
}

TEST(Client, a_refused_connection_is_unavailable) {
  const auto response = client_of("http://127.0.0.1:1")->send({.target = "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::unavailable);
}

TEST(Client, a_connection_closed_between_requests_is_opened_again_even_for_post) {
  const auto answer_once = [](int fd) {
    ScriptedServer::read_head(fd);
    ScriptedServer::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  };
  ScriptedServer server({answer_once, answer_once});
  const auto client = client_of(server.url());
  EXPECT_EQ(client->send({.target = "/"})->body, "ok");
  ASSERT_TRUE(server.has_closed(1));
  const auto second = client->send({.method = "POST", .target = "/"});
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->body, "ok");
}

TEST(Client, a_get_is_sent_again_when_the_kept_connection_dies_without_an_answer) {
  ScriptedServer server({[](int fd) {
                           ScriptedServer::read_head(fd);
                           ScriptedServer::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                           ScriptedServer::read_head(fd);  // and hangs up
                         },
                         [](int fd) {
                           ScriptedServer::read_head(fd);
                           ScriptedServer::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew");
                           ScriptedServer::wait_for_close(fd);
                         }});
  const auto client = client_of(server.url());
  EXPECT_EQ(client->send({.target = "/"})->body, "ok");
  const auto second = client->send({.target = "/"});
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->body, "new");
}

TEST(Client, a_post_that_may_have_been_taken_is_not_sent_again) {
  ScriptedServer server({[](int fd) {
                           ScriptedServer::read_head(fd);
                           ScriptedServer::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                           ScriptedServer::read_head(fd);  // and hangs up
                         },
                         [](int fd) { ScriptedServer::wait_for_close(fd); }});
  const auto client = client_of(server.url());
  EXPECT_EQ(client->send({.target = "/"})->body, "ok");
  const auto second = client->send({.method = "POST", .target = "/"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::unavailable);
  EXPECT_EQ(server.accepted(), 1);
}

TEST(Client, a_fresh_connection_that_dies_is_not_tried_twice) {
  ScriptedServer server({[](int fd) { ScriptedServer::read_head(fd); }, [](int fd) { ScriptedServer::wait_for_close(fd); }});
  EXPECT_EQ(client_of(server.url())->send({.target = "/"}).error().code(), ErrorCode::unavailable);
  EXPECT_EQ(server.accepted(), 1);
}

TEST(Client, interim_answers_are_skipped_and_a_body_may_end_with_the_connection) {
  ScriptedServer server({[](int fd) {
    ScriptedServer::read_head(fd);
    ScriptedServer::say(fd, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\nY: 2\r\n\r\nto the end");
  }});
  const auto response = client_of(server.url())->send({.target = "/"});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->body, "to the end");
  EXPECT_EQ(response->headers, (Headers{{"Y", "2"}}));
}

TEST(Client, chunks_in_any_pieces) {
  ScriptedServer server({[](int fd) {
    ScriptedServer::read_head(fd);
    const std::string_view text =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na;q=1\r\n0123456789\r\n0\r\nT: x\r\n\r\n";
    for (const char& c : text) ScriptedServer::say(fd, {&c, 1});
    ScriptedServer::wait_for_close(fd);
  }});
  EXPECT_EQ(client_of(server.url())->send({.target = "/"})->body, "abc0123456789");
}

TEST(Client, a_cut_answer_is_unavailable) {
  for (const char* text : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "HTTP/1.1 200", "nonsense\r\n\r\n"}) {
    ScriptedServer server({[text](int fd) {
      ScriptedServer::read_head(fd);
      ScriptedServer::say(fd, text);
    }});
    const auto response = client_of(server.url())->send({.target = "/"});
    ASSERT_FALSE(response) << text;
    EXPECT_EQ(response.error().code(), ErrorCode::unavailable) << text;
  }
}

TEST(Client, progress_extends_the_deadline_of_a_stream_only) {
  const auto drip = [](int fd) {
    ScriptedServer::read_head(fd);
    ScriptedServer::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
    for (int i = 0; i < 8; ++i) {
      pollfd event{fd, POLLIN, 0};
      if (::poll(&event, 1, 60) != 0) return;
      ScriptedServer::say(fd, "x");
    }
    ScriptedServer::wait_for_close(fd);
  };
  ScriptedServer server({drip, drip});
  std::string got;
  const auto streamed = client_of(server.url())->stream({.target = "/", .deadline = 300ms}, [&](std::string_view piece) {
    got += piece;
    return true;
  });
  ASSERT_TRUE(streamed) << streamed.error().text();
  EXPECT_EQ(got, "xxxxxxxx");
  EXPECT_EQ(client_of(server.url())->send({.target = "/", .deadline = 300ms}).error().code(), ErrorCode::deadline_exceeded);
}

}  // namespace
}  // namespace helio::net
