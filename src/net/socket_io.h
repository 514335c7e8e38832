#pragma once
// Writing to a socket as far as it takes it at once.

#include "net/asio_types.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <span>
#include <string>

namespace helio::net {

inline bool would_block(const ErrorInfo& ec) { return ec == asio::error::would_block || ec == asio::error::try_again; }

enum class Written { all, blocked, failed };

/// What the socket takes at once; `buffers` keeps the rest.
inline Written write_now(Socket& socket, std::span<asio::const_buffer>& buffers) {
  while (true) {
    while (!buffers.empty() && buffers.front().size() == 0) buffers = buffers.subspan(1);
    if (buffers.empty()) return Written::all;
    ErrorInfo ec;
    std::size_t n = socket.write_some(buffers, ec);
    if (would_block(ec)) return Written::blocked;
    if (ec) return Written::failed;
    for (auto& buffer : buffers) {
      const std::size_t part = std::min(n, buffer.size());
      buffer += part;
      n -= part;
      if (n == 0) break;
    }
  }
}

/// Copies what is left: the memory behind `buffers` is about to be used for something else.
inline std::string rest_of(std::span<const asio::const_buffer> buffers) {
  std::string out;
  for (const asio::const_buffer& buffer : buffers) out.append(static_cast<const char*>(buffer.data()), buffer.size());
  return out;
}

}  // namespace helio::net
