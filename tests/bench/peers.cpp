// The baselines of `./dev bench api`: a bare Beast server that answers one static body, and bare durable SQLite inserts. And a client that
// measures what a server takes: it never sleeps, so that waking it up is no part of the figure.
//   bench-peers serve PORT BODY_BYTES     answers every GET until killed
//   bench-peers insert FILE COUNT BYTES   prints the median latency of one durable insert in microseconds
//   bench-peers post PORT COUNT           sends the request on its input so often, prints the median latency in microseconds
//   bench-peers front | chat | hold | follow …     see peers.h

#include "peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::ip::tcp::socket socket, const std::string& body) : stream_(std::move(socket)) {
    buffer_.reserve(64U << 10U);
    response_.version(11);
    response_.result(http::status::ok);
    response_.set(http::field::content_type, "application/json");
    response_.body() = body;
    response_.prepare_payload();
  }
  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](beast::error_code ec, std::size_t) {
      if (!ec) self->write();
    });
  }

 private:
  void write() {
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code ec, std::size_t) {
      if (!ec) self->read();
    });
  }
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::empty_body> request_;
  http::response<http::string_body> response_;
};

void accept(asio::ip::tcp::acceptor& acceptor, const std::string& body) {
  acceptor.async_accept([&acceptor, &body](beast::error_code ec, asio::ip::tcp::socket socket) {
    if (ec) return;
    beast::error_code ignored;
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    std::make_shared<Session>(std::move(socket), body)->read();
    accept(acceptor, body);
  });
}

int serve(int port, std::size_t bytes) {
  asio::io_context context(1);
  const std::string body(bytes, 'x');
  asio::ip::tcp::acceptor acceptor(context, {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)});
  accept(acceptor, body);
  std::puts("ready");
  std::fflush(stdout);
  context.run();
  return 0;
}

int insert(const char* file, int count, int bytes) {
  sqlite3* db = nullptr;
  if (sqlite3_open(file, &db) != SQLITE_OK) return 1;
  sqlite3_exec(
      db,
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT, v TEXT); CREATE INDEX i ON t(k)",
      nullptr, nullptr, nullptr);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, "INSERT INTO t(k, v) VALUES(?, ?)", -1, &statement, nullptr) != SQLITE_OK) return 1;
  const std::string value(static_cast<std::size_t>(bytes), 'v');
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const std::string key = std::to_string(i * 7919 % 1000003);
    const auto start = std::chrono::steady_clock::now();
    sqlite3_bind_text(statement, 1, key.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(statement, 2, value.c_str(), -1, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_DONE) return 1;
    sqlite3_reset(statement);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  sqlite3_finalize(statement);
  sqlite3_close(db);
  std::sort(times.begin(), times.end());
  std::printf("%.1f\n", times[times.size() / 2]);
  return 0;
}

/// One reply, up to its last byte. Empty: the connection ended.
std::string receive(int fd) {
  std::string reply;
  std::size_t whole = 0;
  while (whole == 0 || reply.size() < whole) {
    char piece[16384];
    const ssize_t n = ::recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n == 0) return {};
    if (n < 0) continue;
    reply.append(piece, static_cast<std::size_t>(n));
    const std::size_t head = reply.find("\r\n\r\n");
    const std::size_t length = reply.find("Content-Length: ");
    if (whole == 0 && head != std::string::npos && length < head) {
      whole = head + 4 + static_cast<std::size_t>(std::atol(reply.c_str() + length + 16));
    }
  }
  return reply;
}

int post(int port, int count) {
  const std::string request((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return 1;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) return 1;
    const std::string reply = receive(fd);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    if (!reply.starts_with("HTTP/1.1 2")) {
      std::fprintf(stderr, "refused: %s\n", reply.c_str());
      return 1;
    }
  }
  ::close(fd);
  std::sort(times.begin(), times.end());
  std::printf("%.1f\n", times[times.size() / 2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "serve" && argc == 4) return serve(std::atoi(argv[2]), static_cast<std::size_t>(std::atoi(argv[3])));
  if (mode == "insert" && argc == 5) return insert(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  if (mode == "post" && argc == 4) return post(std::atoi(argv[2]), std::atoi(argv[3]));
  if (mode == "front" && argc == 4) return front(std::atoi(argv[2]), std::atoi(argv[3]));
  if (mode == "chat" && argc == 8) {
    return chat(std::atoi(argv[2]), argv[3], argv[4], std::atoi(argv[5]), std::atoi(argv[6]), std::atoi(argv[7]));
  }
  if (mode == "follow" && argc == 7) return follow(std::atoi(argv[2]), argv[3], argv[4], std::atoi(argv[5]), std::atoi(argv[6]));
  if (mode == "hold" && argc == 6) return hold(std::atoi(argv[2]), argv[3], argv[4], std::atoi(argv[5]));
  std::fputs(
      "usage: bench-peers serve PORT BYTES | insert FILE COUNT BYTES | post PORT COUNT < REQUEST | front PORT BACK |\n"
      "       chat PORT TARGET HEADER CONNECTIONS MESSAGES BYTES | hold PORT TARGET HEADER CONNECTIONS |\n"
      "       follow PORT TARGET HEADER FOLLOWERS STALLED\n",
      stderr);
  return 2;
}
