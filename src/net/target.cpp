#include "net/target.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace helio::net {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<void> parse_query(std::string_view text, std::map<std::string, std::string>& into) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    const std::size_t equals = std::min(item.find('='), item.size());
    HELIO_TRY(name, percent_decode(item.substr(0, equals), Plus::is_space));
    HELIO_TRY(value, percent_decode(item.substr(std::min(equals + 1, item.size())), Plus::is_space));
    into.insert_or_assign(std::move(name), std::move(value));
  }
  return {};
}

/// "http://host/path" of proxy-style requests becomes "/path".
std::string_view without_origin(std::string_view text) {
  for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
    if (!text.starts_with(scheme)) continue;
    const std::size_t slash = text.find_first_of("/?", scheme.size());
    return slash == std::string_view::npos ? std::string_view("/") : text.substr(slash);
  }
  return text;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail(ErrorCode::invalid_argument, "bad percent escape in the request target");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus == Plus::is_space) {
      c = ' ';
    }
    if (c == '\0') return fail(ErrorCode::invalid_argument, "NUL byte in the request target");
    out += c;
  }
  return out;
}

Result<Target> parse_target(std::string_view text) {
  text = without_origin(text);
  if (text.contains('#')) return fail(ErrorCode::invalid_argument, "the request target has a fragment");
  const std::size_t question = std::min(text.find('?'), text.size());
  std::string_view path = text.substr(0, question);
  if (path.empty()) path = "/";
  if (path.front() != '/') return fail(ErrorCode::invalid_argument, "the request target must start with a slash");

  Target target;
  target.path.reserve(path.size());
  path.remove_prefix(1);
  while (true) {
    const std::size_t end = std::min(path.find('/'), path.size());
    HELIO_TRY(segment, percent_decode(path.substr(0, end), Plus::is_plus));
    if (segment == "." || segment == "..") return fail(ErrorCode::invalid_argument, "dot segments are not allowed in the path");
    target.path += '/';
    target.path += segment;
    target.segments.push_back(std::move(segment));
    if (end == path.size()) break;
    path.remove_prefix(end + 1);
  }
  if (question < text.size()) HELIO_CHECK_OK(parse_query(text.substr(question + 1), target.query));
  return target;
}

Result<Url> parse_url(std::string_view text, std::string_view scheme) {
  const std::string_view whole = text;
  const auto bad = [&](std::string_view why) { return fail(ErrorCode::invalid_argument, "bad URL '{}': {}", whole, why); };
  const std::size_t mark = text.find("://");
  if (mark == std::string_view::npos) return bad("no scheme");
  const std::string_view given = text.substr(0, mark);
  const bool secure = given == "https" && scheme == "http";
  if ((given == "https" && !secure) || given == "wss" || given == "http+unix")
    return fail(ErrorCode::unimplemented, "{}:// is not supported", given);
  if (given != scheme && given != "http" && !secure) return bad(fmt::format("expected {}://", scheme));
  text.remove_prefix(mark + 3);
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; })) {
    return bad("white space");
  }

  Url url;
  url.secure = secure;
  const std::size_t slash = std::min(text.find_first_of("/?#"), text.size());
  const std::string_view authority = text.substr(0, slash);
  std::string_view path = text.substr(slash);
  if (authority.contains('@')) return bad("user names do not belong in it");
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad("no closing bracket");
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return bad("no host");
  if (port.starts_with(':'))
    port.remove_prefix(1);
  else if (!port.empty())
    return bad("text after the bracket");
  std::uint16_t number = secure ? 443 : 80;
  if (!port.empty()) {
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (ec != std::errc{} || end != port.data() + port.size() || number == 0) return bad("bad port");
  }
  url.port = std::to_string(number);
  url.authority = authority;
  if (path.contains('#')) return bad("fragment");
  url.path = path;
  return url;
}

}  // namespace helio::net
