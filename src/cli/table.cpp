#include "cli/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdio>

namespace helio::cli {
namespace {

/// Code points of UTF-8 text: what a terminal shows for the texts that we print.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths(header_.size(), 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], columns(cells[i]));
  };
  measure(header_);
  for (const auto& cells : rows_) measure(cells);
  std::string out;
  const auto write = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      line += cells[i];
      if (i + 1 < widths.size()) line.append(widths[i] - columns(cells[i]) + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  write(header_);
  for (const auto& cells : rows_) write(cells);
  return out;
}

void Table::print() const { std::fputs(text().c_str(), stdout); }

std::string short_age(Duration d) {
  const auto seconds = std::max<std::int64_t>(0, duration_cast<std::chrono::seconds>(d).count());
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string stage_time(Duration d) {
  const double seconds = static_cast<double>(std::max<std::int64_t>(0, d.count())) / 1e6;
  if (seconds < 10) return fmt::format("{:.2f}s", seconds);
  if (seconds < 100) return fmt::format("{:.1f}s", seconds);
  return format_duration(duration_cast<Duration>(duration_cast<std::chrono::seconds>(d)));
}

std::string one_line(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t shown = 0;
  for (const char c : text) {
    const bool start = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (start && shown++ >= width) {
      // The last shown character makes room for the mark.
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U) out.pop_back();
      if (!out.empty()) out.pop_back();
      return out + "…";
    }
    out += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  }
  return out;
}

}  // namespace helio::cli
