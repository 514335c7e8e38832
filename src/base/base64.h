#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace helio {

/// With padding (RFC 4648, section 4).
std::string base64_encode(std::string_view bytes);
/// Empty when it is not padded base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace helio
