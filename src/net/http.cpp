#include "net/http.h"

#include "base/json/json.h"
#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace helio::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

/// Error texts may quote what a peer sent; JSON must be UTF-8.
std::string as_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace

bool same_header(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_header(key, name)) return value;
  }
  return std::nullopt;
}

Response Response::json(int status, std::string text) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", "application/json");
  response.body = std::move(text);
  return response;
}

Response Response::text(int status, std::string text) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(text);
  return response;
}

Response problem(const Error& error) { return problem(error, http_status(error.code())); }

Response problem(const Error& error, int status) {
  json::Object document{{"type", "about:blank"},
                        {"title", json::Value(status_title(status))},
                        {"status", status},
                        {"code", json::Value(to_string(error.code()))},
                        {"detail", json::Value(as_utf8(error.message()))}};
  if (!error.path().empty()) document["path"] = as_utf8(error.path());
  if (!error.args().empty()) {
    json::Object args;
    for (const auto& [key, value] : error.args()) args[as_utf8(key)] = as_utf8(value);
    document["args"] = std::move(args);
  }
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", "application/problem+json");
  response.body = json::dump(json::Value(std::move(document)));
  return response;
}

std::string url_encode(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

std::string_view status_title(int status) {
  struct Row {
    int status;
    std::string_view title;
  };
  static constexpr std::array kRows{
      Row{100, "Continue"},
      Row{101, "Switching Protocols"},
      Row{200, "OK"},
      Row{201, "Created"},
      Row{202, "Accepted"},
      Row{204, "No Content"},
      Row{206, "Partial Content"},
      Row{301, "Moved Permanently"},
      Row{302, "Found"},
      Row{303, "See Other"},
      Row{304, "Not Modified"},
      Row{307, "Temporary Redirect"},
      Row{308, "Permanent Redirect"},
      Row{400, "Bad Request"},
      Row{401, "Unauthorized"},
      Row{403, "Forbidden"},
      Row{404, "Not Found"},
      Row{405, "Method Not Allowed"},
      Row{406, "Not Acceptable"},
      Row{408, "Request Timeout"},
      Row{409, "Conflict"},
      Row{410, "Gone"},
      Row{411, "Length Required"},
      Row{412, "Precondition Failed"},
      Row{413, "Content Too Large"},
      Row{415, "Unsupported Media Type"},
      Row{416, "Range Not Satisfiable"},
      Row{422, "Unprocessable Content"},
      Row{426, "Upgrade Required"},
      Row{429, "Too Many Requests"},
      Row{431, "Request Header Fields Too Large"},
      Row{499, "Client Closed Request"},
      Row{500, "Internal Server Error"},
      Row{501, "Not Implemented"},
      Row{502, "Bad Gateway"},
      Row{503, "Service Unavailable"},
      Row{504, "Gateway Timeout"},
      Row{505, "HTTP Version Not Supported"},
      Row{507, "Insufficient Storage"},
  };
  for (const Row& row : kRows) {
    if (row.status == status) return row.title;
  }
  return "Status";
}

}  // namespace helio::net
