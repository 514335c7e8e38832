#pragma once
// One more header in the requests of an HTTP/2 connection that passes by.

#include "net/http.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace helio::net {

/// Sees what a client of HTTP/2 (gRPC, say) sends without TLS, and adds a header to each of its requests, behind those that it sends
/// itself. Nothing is decoded: the field goes into a frame of its own at the end of each header block, in the form that changes no table of
/// the server's. What does not begin as HTTP/2 does is not let through.
class Http2HeaderAdder final : public ByteFilter {
 public:
  /// `name` in lower case, as HTTP/2 wants it.
  Http2HeaderAdder(std::string_view name, std::string_view value);
  bool pass(std::string_view bytes, std::string& out) override;

 private:
  static constexpr std::size_t kHead = 9;
  void take_head(std::string& out);
  void add_field(std::string& out) const;

  std::string field_;               ///< as HPACK
  std::size_t preface_ = 0;         ///< bytes seen of what every connection begins with
  std::array<char, kHead> head_{};  ///< of the next frame
  std::size_t head_size_ = 0;
  std::size_t left_ = 0;  ///< of the frame's payload
  bool in_payload_ = false;
  bool block_ends_ = false;  ///< with this frame
};

}  // namespace helio::net
