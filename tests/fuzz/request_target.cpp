// The request target: what comes out is what routes and the dashboard's classes are judged by.

#include "check.h"
#include "net/http.h"
#include "net/target.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = helio::net::parse_target(text)) {
    std::string joined;
    for (const std::string& segment : target->segments) {
      FUZZ_CHECK(segment != "." && segment != "..");
      FUZZ_CHECK(segment.find('\0') == std::string::npos);
      joined += '/' + segment;
    }
    FUZZ_CHECK(joined == target->path);
    // Encoded anew it means the same.
    std::string again;
    for (const std::string& segment : target->segments) again += '/' + helio::net::url_encode(segment);
    const auto second = helio::net::parse_target(again);
    FUZZ_CHECK(second && second->segments == target->segments);
  }
  for (const std::string_view scheme : {"http", "ws"}) {
    if (const auto url = helio::net::parse_url(text, scheme)) FUZZ_CHECK(!url->host.empty() && !url->port.empty());
  }
  return 0;
}
