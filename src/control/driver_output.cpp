#include "control/driver_output.h"

#include <algorithm>
#include <array>

namespace helio::control {
namespace {

constexpr std::size_t kReason = 200;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Without terminal colours, and what a progress bar has overwritten.
std::string plain(std::string_view line) {
  line = trimmed(line);
  if (const std::size_t at = line.rfind('\r'); at != std::string_view::npos) line.remove_prefix(at + 1);
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      out += line[i];
      continue;
    }
    while (i < line.size() && line[i] != 'm') ++i;
  }
  return out;
}

/// "ValueError: no such thing", "KeyboardInterrupt", "mypackage.errors.DataError: …": how Python ends a traceback.
bool is_exception(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && is_word(line[end])) ++end;
  if (end == 0 || (end < line.size() && line[end] != ':')) return false;
  const std::string_view name = line.substr(0, end);
  static constexpr std::array<std::string_view, 5> kEnds{"Error", "Exception", "Interrupt", "Exit", "Timeout"};
  return std::ranges::any_of(kEnds, [&](std::string_view suffix) { return name.ends_with(suffix); });
}

/// What Ray itself writes before the entrypoint does.
bool is_preamble(std::string_view line) {
  return line.starts_with("Running entrypoint for job ") || line.ends_with("-- Runtime env is setting up.");
}

std::string cut(std::string text) {
  if (text.size() <= kReason) return text;
  std::size_t end = kReason;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  text.resize(end);
  return text + "…";
}

}  // namespace

std::string_view output_in(std::string_view message) {
  static constexpr std::string_view kBefore = "last available logs";
  const std::size_t at = message.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::size_t line = message.find('\n', at);
  return line == std::string_view::npos ? std::string_view() : message.substr(line + 1);
}

std::string reason_in(std::string_view output) {
  std::string last;
  while (!output.empty()) {
    const std::size_t at = output.rfind('\n');
    const std::string line = plain(at == std::string_view::npos ? output : output.substr(at + 1));
    output = at == std::string_view::npos ? std::string_view() : output.substr(0, at);
    if (is_exception(line)) return cut(line);
    if (last.empty() && !is_preamble(line)) last = line;
  }
  return last.empty() ? last : "its last line is: " + cut(std::move(last));
}

std::string_view tail_of(std::string_view text, std::size_t limit) {
  text = trimmed(text);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.size() <= limit) return text;
  const std::string_view end = text.substr(text.size() - limit);
  const std::size_t line = end.find('\n');
  if (line != std::string_view::npos) return end.substr(line + 1);
  std::size_t start = 0;
  while (start < end.size() && (static_cast<unsigned char>(end[start]) & 0xC0U) == 0x80U) ++start;  // not inside a character
  return end.substr(start);
}

}  // namespace helio::control
