#pragma once
// Bytes from outside (file names, arguments, log lines) on their way into text that must be UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace helio {

/// Length of the well-formed UTF-8 sequence at the start of `text`, 0 when there is none.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);
/// Every byte that is no part of UTF-8 becomes `prefix` and two hex digits: "\xff" with the default.
std::string escape_utf8(std::string_view text, std::string_view prefix = "\\x");

}  // namespace helio
