#pragma once
// A local port whose connections are carried to a route of an HTTP server, each by an upgrade of its own.

#include "net/client.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace helio::net {

/// Where an upgrade is asked for.
struct UpgradeTo {
  std::string url;  ///< http or https://host:port
  std::string target;
  std::string protocol;  ///< of the header Upgrade
  Headers headers;
  std::string roots;       ///< PEM file of certificates that https trusts; empty: the system's
  Duration deadline{90s};  ///< until the server has switched
};

/// Listens on 127.0.0.1 and on no other address. Threads of its own; both functions are called on any of them, several at a time.
class PortForward {
 public:
  /// Asked anew for each connection: a server may be elsewhere by then.
  using Where = std::function<Result<UpgradeTo>()>;
  /// Why a client could not be carried, before it is hung up on: an error of the connection, or the server's answer, which is no 101.
  using OnRefused = std::function<void(const Result<ClientResponse>& answer)>;

  /// Port 0: any free one. Errors: unavailable (in use), permission_denied.
  static Result<std::unique_ptr<PortForward>> open(std::uint16_t port, Where where, OnRefused on_refused);
  virtual ~PortForward() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;

  /// Whether a client would get through: a connection to there and no further. 101 or the server's refusal. Blocks.
  static Result<ClientResponse> try_out(const UpgradeTo& to);
};

}  // namespace helio::net
