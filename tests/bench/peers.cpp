// The baselines of `./dev bench api`: a bare Beast server that answers one static body, and bare durable SQLite inserts.
//   bench-peers serve PORT BODY_BYTES     answers every GET until killed
//   bench-peers insert FILE COUNT BYTES   prints the median latency of one durable insert in microseconds

#include <sqlite3.h>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "serve" && argc == 4) return serve(std::atoi(argv[2]), static_cast<std::size_t>(std::atoi(argv[3])));
  if (mode == "insert" && argc == 5) return insert(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  std::fputs("usage: bench-peers serve PORT BYTES | insert FILE COUNT BYTES\n", stderr);
  return 2;
}
