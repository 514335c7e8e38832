#pragma once
#include "base/clock.h"
#include "base/units.h"

#include <string>
#include <string_view>
#include <vector>

namespace helio::cli {

/// Columns padded to their widest cell, two spaces apart, last column free; cells are cut at nothing.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string text() const;
  /// To stdout.
  void print() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// "12s", "3m", "5h", "2d": one unit, for ages.
std::string short_age(Duration d);
/// "0.35s", "12.3s", "3m10s": for stages.
std::string stage_time(Duration d);
/// Without line breaks and at most `width` characters, cut with "…".
std::string one_line(std::string_view text, std::size_t width);

}  // namespace helio::cli
