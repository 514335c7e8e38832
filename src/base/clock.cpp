#include "base/clock.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <ctime>

namespace helio {
namespace {
std::int64_t read_clock(clockid_t id) {
  timespec ts{};
  ::clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000 + ts.tv_nsec / 1'000;
}

bool digits(std::string_view text, int& out) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc{} && end == text.data() + text.size() && !text.empty() && text[0] != '-';
}
}  // namespace

Timestamp SystemClock::now() const { return {read_clock(CLOCK_REALTIME)}; }
MonoTime SystemClock::mono() const { return {read_clock(CLOCK_BOOTTIME)}; }
const SystemClock& SystemClock::instance() {
  static const SystemClock clock;
  return clock;
}

std::string format_time(Timestamp time) {
  using namespace std::chrono;
  const sys_time<microseconds> point{microseconds(time.us)};
  const auto day = floor<days>(point);
  const year_month_day ymd{day};
  const hh_mm_ss hms{point - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(ymd.year()), static_cast<unsigned>(ymd.month()),
                     static_cast<unsigned>(ymd.day()), hms.hours().count(), hms.minutes().count(), hms.seconds().count(),
                     hms.subseconds().count());
}

std::optional<Timestamp> parse_time(std::string_view t) {
  // YYYY-MM-DDTHH:MM:SS[.f{1,9}](Z|+HH:MM|-HH:MM)
  using namespace std::chrono;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0;
  if (t.size() < 20 || t[4] != '-' || t[7] != '-' || (t[10] != 'T' && t[10] != ' ') || t[13] != ':' || t[16] != ':') return std::nullopt;
  if (!digits(t.substr(0, 4), y) || !digits(t.substr(5, 2), mo) || !digits(t.substr(8, 2), d) || !digits(t.substr(11, 2), h) ||
      !digits(t.substr(14, 2), mi) || !digits(t.substr(17, 2), s)) {
    return std::nullopt;
  }
  const year_month_day ymd{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
  if (!ymd.ok() || h > 23 || mi > 59 || s > 60) return std::nullopt;
  std::string_view rest = t.substr(19);
  std::int64_t micros = 0;
  if (rest.starts_with('.')) {
    std::size_t n = 1;
    std::int64_t scale = 100'000;
    while (n < rest.size() && rest[n] >= '0' && rest[n] <= '9') {
      micros += (rest[n] - '0') * scale;
      scale /= 10;
      ++n;
    }
    if (n == 1) return std::nullopt;
    rest.remove_prefix(n);
  }
  std::int64_t offset_min = 0;
  if (rest != "Z" && rest != "z") {
    int oh = 0, om = 0;
    if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':' || !digits(rest.substr(1, 2), oh) ||
        !digits(rest.substr(4, 2), om)) {
      return std::nullopt;
    }
    offset_min = (oh * 60 + om) * (rest[0] == '-' ? -1 : 1);
  }
  const auto base = sys_days(ymd).time_since_epoch();
  const auto sec = duration_cast<seconds>(base).count() + h * 3600LL + mi * 60LL + s - offset_min * 60;
  return Timestamp{sec * 1'000'000 + micros};
}

std::string format_duration(Duration d) {
  const auto us = d.count();
  if (us < 0) return "-" + format_duration(Duration(-us));
  if (us < 1'000'000) return fmt::format("{}ms", us / 1000);
  if (us < 60'000'000) return fmt::format("{:.1f}s", static_cast<double>(us) / 1e6);
  const auto s = us / 1'000'000;
  if (s < 3600) return s % 60 == 0 ? fmt::format("{}m", s / 60) : fmt::format("{}m{}s", s / 60, s % 60);
  const auto m = s / 60;
  return m % 60 == 0 ? fmt::format("{}h", m / 60) : fmt::format("{}h{}m", m / 60, m % 60);
}

std::optional<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double us;
  };
  static constexpr std::array kUnits{Unit{"ms", 1e3}, Unit{"us", 1.0},   Unit{"s", 1e6},
                                     Unit{"m", 60e6}, Unit{"h", 3600e6}, Unit{"d", 86400e6}};
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc{} || !(value >= 0)) return std::nullopt;  // from_chars reads "nan" too
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) {
      total += value * 1e6;
      break;
    }
    bool found = false;
    for (const Unit& unit : kUnits) {
      if (text.starts_with(unit.name)) {
        total += value * unit.us;
        text.remove_prefix(unit.name.size());
        found = true;
        break;
      }
    }
    if (!found) return std::nullopt;
  }
  if (!(total <= 9e15)) return std::nullopt;  // about 285 years
  return Duration(static_cast<std::int64_t>(total));
}

}  // namespace helio
