#pragma once
// Syntax that several fields share: JSON paths, labels, variables of the environment, folders.

#include "base/error.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace helio::service {

/// `invalid_argument` at a path.
template <class... Args>
std::unexpected<Error> wrong(std::string path, fmt::format_string<Args...> format, Args&&... args) {
  return fail(Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...)).at(std::move(path)));
}

/// `path.key`, or `path['key']` when the key is not a plain word.
std::string member(std::string_view path, std::string_view key);
/// `path[index]`
std::string element(std::string_view path, std::size_t index);

bool has_nul(std::string_view text);
bool has_control(std::string_view text);
bool is_blank(std::string_view text);

/// Kubernetes' syntax, which Ray's node labels share: `[prefix/]name`, letters, digits, `-_.`, at most 63 characters of name.
Result<void> check_label_key(std::string_view key, const std::string& path);
Result<void> check_label_value(std::string_view value, const std::string& path);

/// A variable of the environment: a name without `=` and NUL that heliostat does not set itself, a value without NUL of at most 100 KiB.
/// `name_path` and `value_path` are where they stand.
Result<void> check_variable(std::string_view name, std::string_view value, const std::string& name_path, const std::string& value_path);

/// Absolute, without `.` and `..`, without control characters; trailing slashes are taken off.
Result<std::string> normal_folder(std::string_view text, const std::string& path);
/// The folder itself or one below it; both normal.
bool is_below(std::string_view folder, std::string_view root);

bool is_below_any(std::string_view folder, const std::vector<std::string>& roots);

bool is_one_of(std::string_view text, std::span<const std::string_view> words);
/// "a, b, c" for messages; "none" when empty.
std::string listed(const std::vector<std::string>& names);

}  // namespace helio::service
