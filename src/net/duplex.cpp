#include "net/duplex.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

namespace helio::net {
namespace {

constexpr Duration kHalfOpen = 10s;  ///< after one side has ended
constexpr std::size_t kPiece = 64U << 10U;

/// One direction. Nothing is read while something waits to be written.
struct Way {
  std::string bytes;
  std::size_t written = 0;
  bool ended = false;  ///< the source
  bool told = false;   ///< the other side knows

  [[nodiscard]] bool empty() const { return written == bytes.size(); }
  /// False: the other side is gone.
  bool flush(int to) {
    while (!empty()) {
      const ssize_t n = ::send(to, bytes.data() + written, bytes.size() - written, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      written += static_cast<std::size_t>(n);
    }
    bytes.clear();
    written = 0;
    if (ended && !std::exchange(told, true)) ::shutdown(to, SHUT_WR);
    return true;
  }
};

class Duplex {
 public:
  Duplex(int local, int remote, TlsClient* tls, std::string ahead) : local_(local), remote_(remote), tls_(tls) {
    down_.bytes = std::move(ahead);
  }

  void run(int stop) {
    // What was decrypted before is not seen by poll.
    if (tls_ != nullptr && !decrypt()) return;
    while (up_.flush(remote_) && down_.flush(local_) && !(up_.told && down_.told)) {
      std::array<pollfd, 3> fds{watched(local_, up_, down_), watched(remote_, down_, up_), pollfd{stop, POLLIN, 0}};
      const int n = ::poll(fds.data(), fds.size(), patience());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || fds[2].revents != 0) return;
      if (readable(fds[0]) && up_.empty() && !up_.ended && !from_local()) return;
      if (readable(fds[1]) && down_.empty() && !down_.ended && !from_remote()) return;
    }
  }

 private:
  static bool readable(const pollfd& fd) { return (fd.revents & (POLLIN | POLLHUP | POLLERR)) != 0; }

  /// A descriptor that nothing is wanted of is left out: poll would tell of its end again and again.
  static pollfd watched(int fd, const Way& from, const Way& to) {
    const bool reads = from.empty() && !from.ended;
    const auto events = static_cast<short>((reads ? POLLIN : 0) | (to.empty() ? 0 : POLLOUT));
    return {events == 0 ? -1 : fd, events, 0};
  }

  int patience() {
    if (!up_.ended && !down_.ended) return -1;
    const MonoTime now = SystemClock::instance().mono();
    if (!give_up_) give_up_ = now + kHalfOpen;
    return static_cast<int>(std::max<std::int64_t>(duration_cast<std::chrono::milliseconds>(*give_up_ - now).count(), 0));
  }

  /// Bytes in buffer_; nothing at the end, or when there are none after all. False: the connection is broken.
  bool receive(int fd, std::string_view& bytes, bool& ended) {
    const ssize_t n = ::recv(fd, buffer_.data(), buffer_.size(), 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    ended = n == 0;
    bytes = std::string_view(buffer_.data(), static_cast<std::size_t>(n));
    return true;
  }

  bool from_local() {
    std::string_view bytes;
    if (!receive(local_, bytes, up_.ended)) return false;
    if (bytes.empty()) return true;
    if (tls_ == nullptr) {
      up_.bytes = bytes;
      return true;
    }
    if (!tls_->write(bytes)) return false;
    up_.bytes += tls_->take();
    return true;
  }

  bool from_remote() {
    std::string_view bytes;
    if (!receive(remote_, bytes, down_.ended)) return false;
    if (bytes.empty()) return true;
    if (tls_ == nullptr) {
      down_.bytes = bytes;
      return true;
    }
    tls_->feed(bytes);
    return decrypt();
  }

  bool decrypt() {
    std::array<char, 16384> plain;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    while (true) {
      std::size_t size = 0;
      const auto read = tls_->read(plain, size);
      if (!read) return false;
      if (*read == TlsClient::Read::data) {
        down_.bytes.append(plain.data(), size);
        continue;
      }
      down_.ended = down_.ended || *read == TlsClient::Read::end;
      up_.bytes += tls_->take();  // what TLS itself has to answer
      return true;
    }
  }

  const int local_;
  const int remote_;
  TlsClient* const tls_;
  Way up_;
  Way down_;
  std::optional<MonoTime> give_up_;
  std::array<char, kPiece> buffer_;  // NOLINT(cppcoreguidelines-pro-type-member-init)
};

}  // namespace

void join_sockets(int local, int remote, TlsClient* tls, std::string ahead, int stop) {
  Duplex(local, remote, tls, std::move(ahead)).run(stop);
}

}  // namespace helio::net
