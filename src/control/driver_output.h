#pragma once
// What the end of an entrypoint's output says about its failure; pure.

#include <string>
#include <string_view>

namespace helio::control {

/// The output in the message that Ray keeps of a failed entrypoint: "…, last available logs (truncated to 20,000 chars):\n…". Empty when
/// there is none. Source: JobManager of Ray 2.6 to 2.60.
std::string_view output_in(std::string_view message);

/// One line that says why: the last exception that a traceback ends with, else the last line, told as such. Empty for no output. Colours
/// are left out, and at most 200 bytes are given.
std::string reason_in(std::string_view output);

/// The last lines of a text, whole ones, of at most `limit` bytes; of one line that is longer its end.
std::string_view tail_of(std::string_view text, std::size_t limit);

}  // namespace helio::control
