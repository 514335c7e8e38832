#include "net/response_head.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>

namespace helio::net {
namespace {

bool is_servers(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kNames{"content-length", "transfer-encoding", "date", "connection"};
  return std::ranges::any_of(kNames, [name](std::string_view ours) { return same_header(name, ours); });
}

void add(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

bool is_safe_header(std::string_view name, std::string_view value) {
  const bool token = !name.empty() && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f || c == ':';
  });
  return token && value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool write_head(const Response& response, const HeadOptions& options, std::string& out) {
  for (const auto& [name, value] : response.headers) {
    if (!is_safe_header(name, value)) return false;
  }
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status, status_title(response.status));
  add(out, "Date", options.date);
  for (const auto& [name, value] : response.headers) {
    if (!is_servers(name)) add(out, name, value);
  }
  for (const auto& [name, value] : options.always) {
    if (!find_header(response.headers, name)) add(out, name, value);
  }
  if (options.chunked) add(out, "Transfer-Encoding", "chunked");
  if (options.length) {
    const fmt::format_int length(*options.length);
    add(out, "Content-Length", std::string_view(length.data(), length.size()));
  }
  if (options.close) add(out, "Connection", "close");
  if (options.http10_keep_alive) add(out, "Connection", "keep-alive");
  out += "\r\n";
  return true;
}

std::string http_date(std::int64_t unix_seconds) {
  using namespace std::chrono;
  static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const sys_seconds point{seconds(unix_seconds)};
  const auto day = floor<days>(point);
  const year_month_day date{day};
  const hh_mm_ss time{point - day};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays.at(weekday{day}.c_encoding()), static_cast<unsigned>(date.day()),
                     kMonths.at(static_cast<unsigned>(date.month()) - 1), static_cast<int>(date.year()), time.hours().count(),
                     time.minutes().count(), time.seconds().count());
}

}  // namespace helio::net
