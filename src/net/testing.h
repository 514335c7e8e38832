#pragma once
// For tests of net/: a server on a free port, and a client that sends exactly the bytes it is told to.

#include "net/server.h"
#include "rt/event_loop.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace helio::net::testing {

/// Waits until another thread has made something true.
class Signal {
 public:
  template <class Change>
  void change(Change&& fn) {
    const std::scoped_lock lock(mutex_);
    std::forward<Change>(fn)();
    changed_.notify_all();
  }
  void set() {
    change([this] { set_ = true; });
  }
  template <class Condition>
  [[nodiscard]] bool until(Condition&& condition, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, std::forward<Condition>(condition));
  }
  [[nodiscard]] bool wait() {
    return until([this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class TempDir {
 public:
  TempDir() {
    std::string path = "/tmp/helio-net-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~TempDir() {
    const std::string command = "rm -rf " + path_;
    if (std::system(command.c_str()) != 0) std::abort();
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Loop, pool and server, in the order in which a program has them.
class TestServer {
 public:
  explicit TestServer(Router router, ServerOptions options = {}, std::size_t workers = 4, std::size_t queue = 1024)
      : pool(workers, queue, "test-worker"), server(loop, pool, std::move(router), std::move(options)) {
    loop.start();
    const auto started = server.start();
    if (!started) ADD_FAILURE() << started.error().text();
  }
  ~TestServer() { server.stop(); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(server.port()); }

  rt::EventLoop loop;
  rt::WorkerPool pool;
  Server server;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  struct Adopt {
    int fd;
  };
  explicit RawClient(Adopt open) : fd_(open.fd), connected_(open.fd >= 0) {}
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool connected() const { return connected_; }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  /// Until `text` has arrived (which is returned with all before it), the end of the connection, or `patience`.
  std::string read_until(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (true) {
      if (const auto at = got_.find(text); at != std::string::npos && !text.empty()) {
        std::string out = got_.substr(0, at + text.size());
        got_.erase(0, at + text.size());
        return out;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd event{fd_, POLLIN, 0};
      char buffer[65536];
      if (left.count() <= 0 || ::poll(&event, 1, static_cast<int>(left.count())) <= 0) return timed_out_ = true, std::exchange(got_, {});
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return closed_ = true, std::exchange(got_, {});
      got_.append(buffer, static_cast<std::size_t>(n));
    }
  }
  /// Everything until the peer closes.
  std::string read_all(std::chrono::milliseconds patience = std::chrono::seconds(20)) { return read_until({}, patience); }
  /// Head and body (by Content-Length) of one response.
  std::string read_response() {
    std::string head = read_until("\r\n\r\n");
    const auto at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    std::size_t length = std::stoul(head.substr(at + 16));
    while (got_.size() < length && !closed_ && !timed_out_) {
      std::string more = std::exchange(got_, {});
      got_ = more + read_some();
    }
    head += got_.substr(0, length);
    got_.erase(0, std::min(length, got_.size()));
    return head;
  }
  /// The peer closed the connection in read_*().
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }

 private:
  std::string read_some() {
    pollfd event{fd_, POLLIN, 0};
    char buffer[65536];
    if (::poll(&event, 1, 20'000) <= 0) return timed_out_ = true, std::string();
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) return closed_ = true, std::string();
    return std::string(buffer, static_cast<std::size_t>(n));
  }

  int fd_;
  bool connected_ = false;
  bool closed_ = false;
  bool timed_out_ = false;
  std::string got_;
};

/// A peer that answers with exactly the bytes that a test says.
class RawListener {
 public:
  /// Port 0: any free one.
  explicit RawListener(std::uint16_t port = 0) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool listens = ::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd_, 16) == 0;
    if (!listens || ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) ADD_FAILURE() << "cannot listen";
    port_ = ntohs(address.sin_port);
  }
  ~RawListener() { ::close(fd_); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Waits for a connection.
  [[nodiscard]] std::unique_ptr<RawClient> accept() const {
    pollfd event{fd_, POLLIN, 0};
    if (::poll(&event, 1, 20'000) <= 0) return std::make_unique<RawClient>(RawClient::Adopt{-1});
    return std::make_unique<RawClient>(RawClient::Adopt{::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)});
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace helio::net::testing
