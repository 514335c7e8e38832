// Bytes of a client after the upgrade, at a real server: whatever comes, the connection ends and the server serves the next.

#include "base/utf8.h"
#include "check.h"
#include "link/frames.h"
#include "net/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace helio;

class Place {
 public:
  Place() {
    net::Router router;
    router.add_websocket("/ws", [](net::Request&) {
      net::WsAccept accept;
      accept.open = [](const std::shared_ptr<net::WsSession>& session) {
        net::WsHandlers handlers;
        handlers.on_text = [session](std::string_view frame) {
          FUZZ_CHECK(is_utf8(frame));
          session->send_text(std::string(frame));
        };
        handlers.on_binary = [session](std::string_view frame) {
          const auto parsed = link::parse_data(frame);
          if (parsed) FUZZ_CHECK(parsed->bytes.size() + link::kDataHeader == frame.size() && parsed->offset >= 0);
        };
        return handlers;
      };
      return accept;
    });
    loop_.start();
    net::ServerOptions options;
    options.ws_message_limit = 64U << 10U;
    server_ = std::make_unique<net::Server>(loop_, pool_, std::move(router), options);
    FUZZ_CHECK(server_->start());
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

 private:
  rt::EventLoop loop_;
  rt::WorkerPool pool_{2, 64, "fuzz"};
  std::unique_ptr<net::Server> server_;
};

/// Until `mark`, or the end of the connection. A server that never ends it is found by the fuzzer's own time limit for an input, whose
/// alarm also interrupts calls that are fine.
std::string read_until(int fd, std::string_view mark) {
  std::string got;
  while (mark.empty() || !got.contains(mark)) {
    char buffer[4096];
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return got;
    got.append(buffer, static_cast<std::size_t>(n));
  }
  return got;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* const place = new Place();  // its threads end with the process
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(place->port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EISCONN) {
    FUZZ_CHECK(errno == EINTR || errno == EALREADY);
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // So that ports are free again at once.
  const linger none{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  constexpr std::string_view kUpgrade =
      "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
      "Sec-WebSocket-Version: 13\r\n\r\n";
  FUZZ_CHECK(::send(fd, kUpgrade.data(), kUpgrade.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kUpgrade.size()));
  FUZZ_CHECK(read_until(fd, "\r\n\r\n").starts_with("HTTP/1.1 101"));
  static_cast<void>(::send(fd, data, size, MSG_NOSIGNAL));
  ::shutdown(fd, SHUT_WR);
  read_until(fd, {});
  ::close(fd);
  return 0;
}
