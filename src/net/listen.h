#pragma once
// The listening end of a port.

#include "base/error.h"
#include "net/asio_types.h"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <string>

namespace helio::net {

using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;

/// Port 0: any free one. Errors: invalid_argument for what is no IP address, unavailable (in use), permission_denied.
inline Result<Acceptor> listen_on(const Executor& executor, const std::string& address, std::uint16_t port) {
  ErrorInfo ec;
  const auto parsed = asio::ip::make_address(address, ec);
  if (ec) return fail(ErrorCode::invalid_argument, "'{}' is no address", address);
  const Tcp::endpoint endpoint(parsed, port);
  Acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) return fail(system_error(ec.value(), fmt::format("listen on {}:{}", address, port)));
  return acceptor;
}

}  // namespace helio::net
