#include "net/client_socket.h"

#include "base/check.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace helio::net {

namespace {

MonoTime now() { return SystemClock::instance().mono(); }

Error lost(int error, std::string_view doing) {
  return Error(ErrorCode::unavailable, fmt::format("{}: {}", doing, std::strerror(error)));  // NOLINT(concurrency-mt-unsafe): glibc's is
}

}  // namespace

CancelFlag::CancelFlag() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { HELIO_CHECK(fd_ >= 0, "no descriptor for a client"); }
CancelFlag::~CancelFlag() { ::close(fd_); }

void CancelFlag::raise() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd_, &one, sizeof one);  // fails only when it is up already
}

bool CancelFlag::take() const {
  std::uint64_t count = 0;
  return ::read(fd_, &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

void ClientSocket::close() {
  tls_.reset();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

ClientSocket::Open ClientSocket::release() { return {std::exchange(fd_, -1), std::move(tls_)}; }

bool ClientSocket::is_stale() const {
  char byte = 0;
  const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

Result<bool> ClientSocket::wait(For what, MonoTime deadline) const {
  // A writer watches for answers too: a refusal may come long before the body is through.
  const auto events = static_cast<short>(what == For::writing ? POLLOUT | POLLIN : POLLIN);
  std::array<pollfd, 2> fds{pollfd{fd_, events, 0}, pollfd{cancel_.fd(), POLLIN, 0}};
  while (true) {
    const Duration left = std::max(deadline - now(), Duration(0));
    timespec timeout{};
    timeout.tv_sec = left.count() / 1'000'000;
    timeout.tv_nsec = left.count() % 1'000'000 * 1'000;
    const int n = ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "wait for the server"));
    if (fds[1].revents != 0) {
      static_cast<void>(cancel_.take());
      return fail(ErrorCode::cancelled, "cancelled");
    }
    if (n == 0) return fail(ErrorCode::deadline_exceeded, "no answer in time");
    return (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  }
}

Result<void> ClientSocket::connect(const Url& url, MonoTime deadline) {
  HELIO_CHECK_OK(connect_plain(url, deadline));
  if (!url.secure) return {};
  auto shaken = shake_hands(url, deadline);
  if (!shaken) close();
  return shaken;
}

Result<void> ClientSocket::shake_hands(const Url& url, MonoTime deadline) {
  HELIO_TRY(tls, TlsClient::create(url.host, roots_));
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    auto done = tls->handshake();
    if (!done) return fail(std::move(done).error().during("connect to " + url.authority));
    std::size_t ignored = 0;
    HELIO_TRY(sent, send_bytes(tls->take(), {}, deadline, ignored));
    static_cast<void>(sent);
    if (*done) break;
    HELIO_TRY(bytes, receive_bytes(buffer, deadline));
    if (bytes.empty()) return fail(ErrorCode::unavailable, "{} hung up during the TLS handshake", url.authority);
    tls->feed(bytes);
  }
  tls_ = std::move(tls);
  return {};
}

Result<ClientSocket::Sent> ClientSocket::send(std::string_view head, std::string_view body, MonoTime deadline, std::size_t& sent) {
  if (!tls_) return send_bytes(head, body, deadline, sent);
  HELIO_TRY(of_head, send_secretly(head, deadline, sent));
  if (of_head == Sent::answered) return of_head;
  return send_secretly(body, deadline, sent);
}

Result<ClientSocket::Sent> ClientSocket::send_secretly(std::string_view text, MonoTime deadline, std::size_t& sent) {
  constexpr std::size_t kPiece = 64U << 10U;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, kPiece);
    HELIO_CHECK_OK(tls_->write(piece));
    HELIO_TRY(flushed, flush(deadline));
    if (flushed == Sent::answered) return flushed;
    sent += piece.size();
    text.remove_prefix(piece.size());
  }
  return Sent::all;
}

Result<ClientSocket::Sent> ClientSocket::flush(MonoTime deadline) {
  const std::string bytes = tls_->take();
  std::string_view left = bytes;
  while (!left.empty()) {
    std::size_t done = 0;
    HELIO_TRY(sent, send_bytes(left, {}, deadline, done));
    left.remove_prefix(done);
    if (sent == Sent::all) break;
    // Readable, or gone. What it said may have been for TLS alone.
    std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    HELIO_TRY(heard, receive_bytes(buffer, deadline));
    if (heard.empty()) return Sent::answered;
    tls_->feed(heard);
    if (tls_->has_data()) return Sent::answered;
  }
  return Sent::all;
}

Result<std::string_view> ClientSocket::receive(std::span<char> buffer, MonoTime deadline) {
  if (!tls_) return receive_bytes(buffer, deadline);
  std::array<char, 16384> raw;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    std::size_t size = 0;
    HELIO_TRY(read, tls_->read(buffer, size));
    if (read == TlsClient::Read::data) return std::string_view(buffer.data(), size);
    if (read == TlsClient::Read::end) return std::string_view();
    HELIO_TRY(flushed, flush(deadline));
    static_cast<void>(flushed);
    HELIO_TRY(bytes, receive_bytes(raw, deadline));
    // An end that TLS did not announce may be the work of somebody in between.
    if (bytes.empty()) return fail(ErrorCode::unavailable, "the connection was cut");
    tls_->feed(bytes);
  }
}

Result<void> ClientSocket::connect_plain(const Url& url, MonoTime deadline) {
  close();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int rc = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); rc != 0) {
    return fail(ErrorCode::unavailable, "resolve {}: {}", url.host, ::gai_strerror(rc));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  Error last(ErrorCode::unavailable, "no address for " + url.host);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    close();
    fd_ = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) {
      last = system_error(errno, "make a socket");
      continue;
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int error = ::connect(fd_, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      auto waited = wait(For::writing, deadline);
      if (!waited) {
        close();
        return fail(std::move(waited).error().during("connect to " + url.authority));
      }
      socklen_t size = sizeof error;
      ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return {};
    last = lost(error, "connect to " + url.authority);
  }
  close();
  return fail(std::move(last));
}

Result<ClientSocket::Sent> ClientSocket::send_bytes(std::string_view head, std::string_view body, MonoTime deadline, std::size_t& sent) {
  while (!head.empty() || !body.empty()) {
    // The kernel does not write through these pointers.
    std::array<iovec, 2> parts{iovec{const_cast<char*>(head.data()), head.size()}, iovec{const_cast<char*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return Sent::answered;
    if (n < 0 && errno != EAGAIN) return fail(lost(errno, "send the request"));
    if (n < 0) {
      HELIO_TRY(readable, wait(For::writing, deadline));
      if (readable) return Sent::answered;
      continue;
    }
    auto done = static_cast<std::size_t>(n);
    sent += done;
    const std::size_t of_head = std::min(done, head.size());
    head.remove_prefix(of_head);
    body.remove_prefix(done - of_head);
  }
  return Sent::all;
}

Result<std::string_view> ClientSocket::receive_bytes(std::span<char> buffer, MonoTime deadline) {
  while (true) {
    HELIO_TRY(readable, wait(For::reading, deadline));
    if (!readable) continue;
    const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return fail(lost(errno, "read the response"));
    return std::string_view(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace helio::net
