#include "base/units.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <cmath>

namespace helio {

std::optional<Bytes> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double factor;
  };
  static constexpr std::array kUnits{
      Unit{"", 1},
      Unit{"B", 1},
      Unit{"KiB", 1024.0},
      Unit{"Ki", 1024.0},
      Unit{"K", 1e3},
      Unit{"KB", 1e3},
      Unit{"k", 1e3},
      Unit{"MiB", 1048576.0},
      Unit{"Mi", 1048576.0},
      Unit{"M", 1e6},
      Unit{"MB", 1e6},
      Unit{"GiB", 1073741824.0},
      Unit{"Gi", 1073741824.0},
      Unit{"G", 1e9},
      Unit{"GB", 1e9},
      Unit{"TiB", 1099511627776.0},
      Unit{"Ti", 1099511627776.0},
      Unit{"T", 1e12},
      Unit{"TB", 1e12},
  };
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || !(value >= 0)) return std::nullopt;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (unit.name != suffix) continue;
    const double total = value * unit.factor;
    if (!(total <= 4.6e18)) return std::nullopt;
    return Bytes{static_cast<std::int64_t>(total)};
  }
  return std::nullopt;
}

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<std::string_view, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes.n);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  const double rounded = std::round(value * 10) / 10;
  return rounded == std::floor(rounded) ? fmt::format("{:.0f}{}", rounded, kNames[unit]) : fmt::format("{:.1f}{}", rounded, kNames[unit]);
}

std::string format_cpu(MilliCpu cpu) { return fmt::format("{:g}", static_cast<double>(cpu.n) / 1000.0); }

}  // namespace helio
