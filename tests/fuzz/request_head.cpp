// A whole request as bytes: however it is cut, it means the same or is refused.

#include "check.h"
#include "net/request_parser.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using helio::net::ErrorInfo;
using helio::net::Request;
using helio::net::RequestParser;

struct Outcome {
  bool done = false;
  bool failed = false;
  Request request;
  std::string target;
  std::string complaint;
};

/// As a connection does: head, then body, `step` bytes at a time; what the parser leaves comes again with more.
Outcome parse(std::string_view bytes, std::size_t step) {
  Outcome out;
  RequestParser parser(out.request, 4096);
  parser.body_limit(std::uint64_t{8192});
  std::string held;
  bool sink = false;
  while (!out.failed && !parser.is_done()) {
    const std::size_t n = std::min(step, bytes.size());
    held += bytes.substr(0, n);
    bytes.remove_prefix(n);
    for (bool more = true; more && !out.failed && !parser.is_done();) {
      if (parser.is_header_done() && !sink) {
        parser.set_sink(out.request.body);
        sink = true;
      }
      const bool had_head = parser.is_header_done();
      ErrorInfo ec;
      const std::size_t used = parser.feed(held, ec);
      held.erase(0, used);
      out.failed = ec && ec != boost::beast::http::error::need_more;
      more = used > 0 || (parser.is_header_done() && !had_head);
    }
    if (n == 0) break;
  }
  out.done = parser.is_done();
  out.target = parser.target();
  if (parser.is_header_done()) out.complaint = parser.complaint();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 16384));
  const Outcome whole = parse(bytes, bytes.size() + 1);
  const Outcome pieces = parse(bytes, 7);
  FUZZ_CHECK(whole.done == pieces.done);
  if (!whole.done) return 0;
  FUZZ_CHECK(whole.target == pieces.target && whole.request.method == pieces.request.method);
  FUZZ_CHECK(whole.request.headers == pieces.request.headers && whole.request.body == pieces.request.body);
  FUZZ_CHECK(whole.complaint == pieces.complaint);
  FUZZ_CHECK(whole.request.body.size() <= 8192);
  return 0;
}
