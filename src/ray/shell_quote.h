#pragma once
#include <span>
#include <string>
#include <string_view>

namespace helio::ray {

/// One word for a POSIX shell, whatever it contains (a NUL cannot be passed and ends it for the shell).
std::string shell_quote(std::string_view word);
/// A command line that the shell splits into exactly these words.
std::string shell_join(std::span<const std::string> argv);

}  // namespace helio::ray
