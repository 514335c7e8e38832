#include "ray/shell_quote.h"

namespace helio::ray {

std::string shell_quote(std::string_view word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  out += '\'';
  return out;
}

std::string shell_join(std::span<const std::string> argv) {
  std::string out;
  for (const std::string& word : argv) {
    if (!out.empty()) out += ' ';
    // A plain first word with '=' would be an assignment; quoting makes it a command name. '=' is not among the plain characters.
    out += shell_quote(word);
  }
  return out;
}

}  // namespace helio::ray
