#pragma once
#include "net/http.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace helio::net {

struct HeadOptions {
  std::string_view date;                ///< HTTP date
  std::optional<std::uint64_t> length;  ///< Content-Length; empty with `chunked` or when the body ends with the connection
  bool chunked = false;
  bool close = false;                                             ///< Connection: close
  bool http10_keep_alive = false;                                 ///< must be said to an HTTP/1.0 client
  std::span<const std::pair<std::string, std::string>> always{};  ///< where the response has no header of that name
};

/// Appends status line, headers and the blank line to `out`. False when a header of the handler could split the response.
bool write_head(const Response& response, const HeadOptions& options, std::string& out);
/// "Mon, 30 Nov 2026 03:44:43 GMT"
std::string http_date(std::int64_t unix_seconds);
/// No line break, NUL or space where a header's name or value has none.
bool is_safe_header(std::string_view name, std::string_view value);

}  // namespace helio::net
