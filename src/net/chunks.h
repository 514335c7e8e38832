#pragma once
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <string_view>

namespace helio::net {

/// Beast (1.81) ends the program by an assertion when it sees the line of the last chunk ("0") a second time with less than an empty line
/// behind it. Between two calls of put(), this says whether to wait for more bytes first.
class LastChunkGuard {
 public:
  /// `rest`: what put() would be given.
  [[nodiscard]] bool must_wait(std::string_view rest) const {
    constexpr std::size_t kLastChunk = 5;  // "0\r\n\r\n"
    if (!starved_) return false;
    const std::size_t size = rest.size();
    if (rest.starts_with("\r\n")) rest.remove_prefix(2);
    return size < kLastChunk && rest.starts_with('0');
  }
  /// After put() has taken `used` bytes. Bytes of a body are always taken; only the lines between chunks are left until they are whole.
  template <bool isRequest>
  void note(const boost::beast::http::basic_parser<isRequest>& parser, std::size_t used, const boost::system::error_code& ec) {
    starved_ = used == 0 && ec == boost::beast::http::error::need_more && parser.is_header_done() && parser.chunked();
  }

 private:
  bool starved_ = false;
};

}  // namespace helio::net
