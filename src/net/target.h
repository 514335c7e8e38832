#pragma once
// The request target and base URLs: decoding with validation.

#include "base/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace helio::net {

struct Target {
  std::vector<std::string> segments;  ///< decoded; "/a/" is {"a", ""}: an encoded slash stays within its segment
  std::string path;                   ///< decoded
  std::map<std::string, std::string> query;
};

/// Origin form or absolute form. Errors: invalid_argument (bad escape, NUL, dot segment, fragment).
Result<Target> parse_target(std::string_view text);

/// Text with %XX replaced; in queries `+` is a space. Errors: invalid_argument.
enum class Plus { is_plus, is_space };
Result<std::string> percent_decode(std::string_view text, Plus plus);

struct Url {
  std::string host;       ///< without brackets
  std::string port;       ///< decimal
  std::string authority;  ///< for the Host header
  std::string path;       ///< "" or "/prefix", never ends in a slash for base URLs
  bool secure = false;    ///< https
};
/// `scheme` is http (which https is too) or ws. Errors: invalid_argument; unimplemented for wss and the unix form.
Result<Url> parse_url(std::string_view text, std::string_view scheme);

}  // namespace helio::net
