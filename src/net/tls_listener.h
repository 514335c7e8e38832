#pragma once
// TLS in front of a Server: each connection is decrypted here and handed to the server over a socket pair, so that everything behind it is
// the same with and without TLS.

#include "base/clock.h"
#include "base/error.h"
#include "net/server.h"
#include "rt/event_loop.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace helio::net {

struct TlsOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;   ///< 0: any free one
  std::string certificate;  ///< PEM file: the certificate, then those that lead to its root
  std::string key;          ///< PEM file, not encrypted
  Duration handshake_deadline{10s};
  std::size_t max_connections = 4096;
};

/// TLS 1.2 and 1.3. The files are looked at for each new connection and read again when they have changed; a pair that does not fit is
/// logged, and the former one stays.
class TlsListener {
 public:
  /// `server` has been started and outlives this.
  TlsListener(rt::EventLoop& loop, Server& server, TlsOptions options);
  /// stop().
  ~TlsListener();
  TlsListener(const TlsListener&) = delete;
  TlsListener& operator=(const TlsListener&) = delete;
  /// Errors: invalid_argument with what is wrong with certificate or key; unavailable, permission_denied as Server::start().
  Result<void> start();
  /// Closes the listener and all its connections. Idempotent. Not from the loop; before the server's stop().
  void stop();
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace helio::net
