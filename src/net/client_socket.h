#pragma once
// A connected socket for one blocking thread: every wait has a deadline and can be interrupted.

#include "base/clock.h"
#include "base/error.h"
#include "net/target.h"
#include "net/tls_client.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace helio::net {

/// Interrupts waits from another thread.
class CancelFlag {
 public:
  CancelFlag();
  ~CancelFlag();
  CancelFlag(const CancelFlag&) = delete;
  CancelFlag& operator=(const CancelFlag&) = delete;
  /// Any thread.
  void raise() const;
  /// Takes it down; true when it was up.
  [[nodiscard]] bool take() const;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

class ClientSocket {
 public:
  /// `roots`: PEM file of certificates that https trusts; empty: the system's.
  explicit ClientSocket(const CancelFlag& cancel, std::string roots = {}) : cancel_(cancel), roots_(std::move(roots)) {}
  ~ClientSocket() { close(); }
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  /// Tries each address of the host. Errors: unavailable (https: also for a certificate that is not trusted), deadline_exceeded, cancelled.
  Result<void> connect(const Url& url, MonoTime deadline);
  void close();
  /// A connection for somebody else to go on with; it does not block.
  struct Open {
    int fd = -1;                     ///< the new owner's
    std::unique_ptr<TlsClient> tls;  ///< https
  };
  Open release();
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// The peer has closed it, or sent something that nobody asked for.
  [[nodiscard]] bool is_stale() const;

  enum class Sent { all, answered };
  /// `answered`: the peer has begun to answer, or has hung up, before everything was sent; read what it said. `sent` counts the bytes.
  Result<Sent> send(std::string_view head, std::string_view body, MonoTime deadline, std::size_t& sent);
  /// At least one byte, or an empty view at the end. Good until the next call.
  Result<std::string_view> receive(std::span<char> buffer, MonoTime deadline);

 private:
  enum class For { reading, writing };
  /// True when readable.
  Result<bool> wait(For what, MonoTime deadline) const;
  Result<void> connect_plain(const Url& url, MonoTime deadline);
  Result<void> shake_hands(const Url& url, MonoTime deadline);
  /// As they are. `answered`: see send().
  Result<Sent> send_bytes(std::string_view head, std::string_view body, MonoTime deadline, std::size_t& sent);
  Result<std::string_view> receive_bytes(std::span<char> buffer, MonoTime deadline);
  Result<Sent> send_secretly(std::string_view text, MonoTime deadline, std::size_t& sent);
  /// What TLS has to say goes out; `answered` only when the server has said something to us, not to TLS.
  Result<Sent> flush(MonoTime deadline);

  const CancelFlag& cancel_;
  const std::string roots_;
  int fd_ = -1;
  std::unique_ptr<TlsClient> tls_;  ///< https
};

}  // namespace helio::net
