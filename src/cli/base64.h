#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace helio::cli {

/// Empty when it is not padded base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace helio::cli
