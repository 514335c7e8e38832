#pragma once
// TLS of a client as bytes in and bytes out, without a socket.

#include "base/error.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace helio::net {

class TlsClient {
 public:
  /// For a server that shows a certificate for `host` (name or address) which leads to a root of the PEM file `roots`, or of the system
  /// when that is empty. Errors: invalid_argument for a file that holds no certificates.
  static Result<std::unique_ptr<TlsClient>> create(const std::string& host, const std::string& roots);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// What came from the server.
  void feed(std::string_view bytes);
  /// What shall go to it now.
  std::string take();
  /// Goes on with the handshake; true when it is done. Error: unavailable with the reason, such as a certificate that is not trusted.
  Result<bool> handshake();
  /// Encrypts all of it.
  Result<void> write(std::string_view text);
  enum class Read { data, nothing, end };
  /// `end`: the server has said that no more comes.
  Result<Read> read(std::span<char> buffer, std::size_t& size);
  /// Decrypted bytes are there, or can be had from what was fed.
  bool has_data();

 private:
  struct Impl;
  explicit TlsClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helio::net
