#include "net/port_forward.h"

#include "net/client_socket.h"
#include "net/duplex.h"
#include "net/response_head.h"
#include "net/response_parser.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <thread>
#include <utility>

namespace helio::net {
namespace {

constexpr int kSwitching = 101;
constexpr std::size_t kMostClients = 256;
constexpr std::size_t kAnswerLimit = 1U << 20U;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// The server's answer; with 101, what came behind it.
struct Upgraded {
  ClientResponse response;
  std::string ahead;
};

Result<std::string> head_of(const UpgradeTo& to, const Url& url) {
  std::string head = "GET " + url.path + to.target + " HTTP/1.1\r\nHost: " + url.authority + "\r\nConnection: Upgrade\r\n";
  Headers headers = to.headers;
  headers.emplace_back("Upgrade", to.protocol);
  for (const auto& [name, value] : headers) {
    if (!is_safe_header(name, value)) return fail(ErrorCode::invalid_argument, "bad header '{}'", name);
    head += name + ": " + value + "\r\n";
  }
  return head + "\r\n";
}

/// Connects and asks. The socket is open afterwards.
Result<Upgraded> ask(ClientSocket& socket, const UpgradeTo& to) {
  std::string base = to.url;
  while (base.ends_with('/')) base.pop_back();
  HELIO_TRY(url, parse_url(base, "http"));
  HELIO_TRY(head, head_of(to, url));
  const MonoTime deadline = SystemClock::instance().mono() + to.deadline;
  HELIO_CHECK_OK(socket.connect(url, deadline));
  std::size_t sent = 0;
  HELIO_TRY(how, socket.send(head, {}, deadline, sent));
  static_cast<void>(how);  // an answer that comes early is read all the same
  Upgraded out;
  ResponseParser parser(out.response.status, out.response.headers, [&out](std::string_view bytes) {
    out.response.body.append(bytes);
    return out.response.body.size() <= kAnswerLimit;
  });
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::string rest;
  while (!parser.is_done()) {
    HELIO_TRY(bytes, socket.receive(buffer, deadline));
    boost::system::error_code ec;
    if (bytes.empty()) {
      if (!parser.got_some()) return fail(ErrorCode::unavailable, "{} closed the connection without an answer", url.authority);
      parser.put_eof(ec);
      if (ec) return fail(ErrorCode::unavailable, "{} closed the connection in the middle of its answer", url.authority);
      break;
    }
    rest.append(bytes);
    rest.erase(0, parser.feed(rest, ec));
    if (ec) return fail(ErrorCode::unavailable, "malformed answer of {}: {}", url.authority, ec.message());
  }
  out.ahead = std::move(rest);
  return out;
}

class Listener final : public PortForward {
 public:
  Listener(int fd, std::uint16_t port, Where where, OnRefused on_refused)
      : fd_(fd), port_(port), where_(std::move(where)), on_refused_(std::move(on_refused)), thread_([this] { accept_clients(); }) {}
  ~Listener() override {
    stop_.raise();
    thread_.join();
    for (const auto& client : clients_) client->stop.raise();
    for (const auto& client : clients_) client->thread.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::uint16_t port() const override { return port_; }

 private:
  struct Client {
    CancelFlag stop;
    std::atomic<bool> over{false};
    std::thread thread;
  };

  void accept_clients() {
    while (true) {
      std::array<pollfd, 2> fds{pollfd{fd_.get(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
      if (fds[1].revents != 0) return;
      if (fds[0].revents == 0) continue;
      const int client = ::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      clients_.remove_if([](const auto& one) {
        if (!one->over.load()) return false;
        one->thread.join();
        return true;
      });
      if (client < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ::poll(&fds[1], 1, 100);  // it stays readable: no busy loop
        continue;
      }
      if (clients_.size() >= kMostClients) {
        ::close(client);
        continue;
      }
      const int on = 1;
      ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      clients_.push_back(std::make_unique<Client>());
      Client* const made = clients_.back().get();
      made->thread = std::thread([this, made, client] {
        carry(Fd(client), made->stop);
        made->over = true;
      });
    }
  }

  void carry(const Fd& client, const CancelFlag& stop) {
    const auto to = where_();
    if (!to) return on_refused_(std::unexpected(to.error()));
    ClientSocket socket(stop, to->roots);
    auto asked = ask(socket, *to);
    if (!asked) {
      if (asked.error().code() != ErrorCode::cancelled) on_refused_(std::unexpected(asked.error()));
      return;
    }
    if (asked->response.status != kSwitching) return on_refused_(std::move(asked->response));
    const ClientSocket::Open connected = socket.release();
    const Fd there(connected.fd);
    join_sockets(client.get(), there.get(), connected.tls.get(), std::move(asked->ahead), stop.fd());
  }

  const Fd fd_;
  const std::uint16_t port_;
  const Where where_;
  const OnRefused on_refused_;
  CancelFlag stop_;
  std::list<std::unique_ptr<Client>> clients_;  ///< of the accepting thread, until it has ended
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PortForward>> PortForward::open(std::uint16_t port, Where where, OnRefused on_refused) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(system_error(errno, "make a socket"));
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  // The system's own calls take every kind of address through this type.
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, any, size) != 0 || ::listen(fd, SOMAXCONN) != 0 || ::getsockname(fd, any, &size) != 0) {
    const Error why = system_error(errno, fmt::format("listen on 127.0.0.1:{}", port));
    ::close(fd);
    return fail(why);
  }
  return std::make_unique<Listener>(fd, ntohs(address.sin_port), std::move(where), std::move(on_refused));
}

Result<ClientResponse> PortForward::try_out(const UpgradeTo& to) {
  const CancelFlag nobody;
  ClientSocket socket(nobody, to.roots);
  HELIO_TRY(asked, ask(socket, to));
  return std::move(asked.response);
}

}  // namespace helio::net
