#pragma once
#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>

namespace helio::net {

/// Beast (1.81) ends the program by an assertion when the last chunk's first line is followed by less than an empty line. No chunked body
/// ends with less than "0\r\n\r\n", so nothing is lost when fewer bytes wait for more of them.
template <bool isRequest>
bool is_too_little(const boost::beast::http::basic_parser<isRequest>& parser, std::size_t bytes) {
  constexpr std::size_t kLastChunk = 5;
  return parser.is_header_done() && parser.chunked() && bytes < kLastChunk;
}

}  // namespace helio::net
