// TLS of the server and of the client, with each other.

#include "net/client.h"
#include "net/testing.h"
#include "net/testing_tls.h"
#include "net/tls_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fstream>
#include <thread>

namespace helio::net {
namespace {

using ::testing::HasSubstr;
using testing::make_certificate;
using testing::RawClient;
using testing::TempDir;
using testing::TestServer;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    make_certificate("127.0.0.1", certificate, key);
    Router router;
    router.add("GET", "/hello", {},
               [](Request& request) { return Response::text(200, request.secure ? "secret " + request.peer : "plain"); });
    RouteOptions large;
    large.body_limit = 16U << 20U;
    router.add("POST", "/echo", large, [](Request& request) { return Response::text(200, std::move(request.body)); });
    RouteOptions guarded;
    guarded.body_limit = 16U << 20U;
    guarded.admit = [](Request&) { return std::optional(problem(Error(ErrorCode::unauthenticated, "no token"))); };
    router.add("POST", "/guarded", guarded, [](Request&) { return Response::text(200, ""); });
    server.emplace(std::move(router));
    TlsOptions options;
    options.certificate = certificate;
    options.key = key;
    options.handshake_deadline = 300ms;
    listener.emplace(server->loop, server->server, options);
    const auto started = listener->start();
    EXPECT_TRUE(started) << started.error().text();
  }
  ~TlsTest() override { listener->stop(); }
  std::unique_ptr<HttpClient> client(const std::string& roots) const {
    auto made = HttpClient::create("https://127.0.0.1:" + std::to_string(listener->port()), {}, roots);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  Result<ClientResponse> get(const std::string& roots) const { return client(roots)->send({.target = "/hello"}); }

  TempDir folder;
  const std::string certificate = folder.path() + "/cert.pem";
  const std::string key = folder.path() + "/key.pem";
  std::optional<TestServer> server;
  std::optional<TlsListener> listener;
};

TEST_F(TlsTest, carries_requests_and_says_that_it_does) {
  const auto https = client(certificate);
  for (int i = 0; i < 3; ++i) {
    const auto response = https->send({.target = "/hello"});
    ASSERT_TRUE(response) << response.error().text();
    EXPECT_THAT(response->body, HasSubstr("secret 127.0.0.1:")) << "and whose it is";
  }
  const auto plain = HttpClient::create(server->url());
  EXPECT_EQ((*plain)->send({.target = "/hello"})->body, "plain");
}

TEST_F(TlsTest, carries_large_bodies_both_ways) {
  std::string body(5'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('a' + i % 26);
  const auto response = client(certificate)->send({.method = "POST", .target = "/echo", .body = body});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->body, body);
}

TEST_F(TlsTest, a_refusal_comes_before_the_body_is_through) {
  const auto response = client(certificate)->send({.method = "POST", .target = "/guarded", .body = std::string(8'000'000, 'x')});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->status, 401);
}

TEST_F(TlsTest, a_certificate_that_is_not_trusted_is_refused_with_the_reason) {
  const auto unknown = get("");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(unknown.error().text(), HasSubstr("not trusted"));
  make_certificate("example.org", certificate, key);
  const auto mismatch = get(certificate);
  ASSERT_FALSE(mismatch);
  EXPECT_THAT(mismatch.error().text(), HasSubstr("IP address mismatch"));
  std::ofstream(folder.path() + "/empty.pem") << "nothing";
  const auto no_roots = get(folder.path() + "/empty.pem");
  ASSERT_FALSE(no_roots);
  EXPECT_EQ(no_roots.error().code(), ErrorCode::invalid_argument);
}

TEST_F(TlsTest, a_new_certificate_is_taken_without_a_restart_and_a_broken_one_is_not) {
  const std::string old = folder.path() + "/old.pem";
  std::ofstream(old) << std::ifstream(certificate).rdbuf();
  ASSERT_TRUE(get(old));
  const auto open = client(old);
  ASSERT_TRUE(open->send({.target = "/hello"}));
  make_certificate("127.0.0.1", certificate, key);
  EXPECT_TRUE(get(certificate));
  EXPECT_FALSE(get(old));
  EXPECT_TRUE(open->send({.target = "/hello"})) << "who was connected stays so";
  const std::string good = folder.path() + "/good.pem";
  std::ofstream(good) << std::ifstream(certificate).rdbuf();
  std::ofstream(key) << "garbage";
  EXPECT_TRUE(get(good)) << "the former pair stays";
}

TEST_F(TlsTest, nonsense_and_silence_end_and_leave_nothing) {
  {
    RawClient plain(listener->port());
    ASSERT_TRUE(plain.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
    plain.read_all();
    EXPECT_TRUE(plain.closed());
    RawClient silent(listener->port());
    silent.read_all();
    EXPECT_TRUE(silent.closed()) << "a handshake has a deadline";
  }
  EXPECT_TRUE(get(certificate));
  listener->stop();
  server->server.stop();
  EXPECT_EQ(server->server.connections(), 0U);
}

TEST_F(TlsTest, a_pair_that_does_not_fit_is_no_start) {
  const std::string other = folder.path() + "/other.pem";
  make_certificate("127.0.0.1", other, folder.path() + "/other.key");
  for (const auto& [cert_file, key_file] :
       {std::pair{other, key}, std::pair{folder.path() + "/none", key}, std::pair{certificate, folder.path() + "/none"}}) {
    TlsOptions options;
    options.certificate = cert_file;
    options.key = key_file;
    TlsListener broken(server->loop, server->server, options);
    const auto started = broken.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code(), ErrorCode::invalid_argument) << started.error().text();
  }
}

}  // namespace
}  // namespace helio::net
