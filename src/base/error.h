#pragma once
// Error philosophy: docs/architecture/errors.md. A function that can fail returns Result<T>; exceptions of libraries end at their door.

#include <fmt/core.h>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helio {

/// Closed set. One table (error.cpp) maps each to an HTTP status and to the exit code of the CLI.
enum class ErrorCode {
  invalid_argument,
  unauthenticated,
  permission_denied,
  not_found,
  already_exists,
  conflict,
  precondition_failed,
  resource_exhausted,
  unavailable,
  deadline_exceeded,
  cancelled,
  unimplemented,
  internal,
  storage_full,
};

std::string_view to_string(ErrorCode code);
std::optional<ErrorCode> error_code_from_string(std::string_view text);
int http_status(ErrorCode code);
/// Exit code of the CLI when the platform (not the job) failed; all in 64..79 so that a job's own code is rarely mistaken for it.
int cli_exit_code(ErrorCode code);

/// What went wrong, for a person (`message`) and for a program (`code`, `path`, `args`). Value type, cheap to move.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  /// JSON path of the offending field, such as `$.workers[0].count`; empty when no single field is at fault.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& args() const { return args_; }

  Error&& at(std::string path) && {
    path_ = std::move(path);
    return std::move(*this);
  }
  /// Adds a named fact (`job`, `host`, ...) that a client may show or match on.
  Error&& with(std::string key, std::string value) && {
    args_.emplace_back(std::move(key), std::move(value));
    return std::move(*this);
  }
  /// Puts what was being attempted in front: "read config: permission denied".
  Error&& during(std::string_view doing) && {
    message_ = std::string(doing) + ": " + message_;
    return std::move(*this);
  }
  /// "code at path: message" for logs and terminals.
  [[nodiscard]] std::string text() const;

 private:
  ErrorCode code_;
  std::string message_;
  std::string path_;
  std::vector<std::pair<std::string, std::string>> args_;
};

template <class T = void>
using Result = std::expected<T, Error>;

/// `return fail(ErrorCode::not_found, "no job {}", id);`
template <class... Args>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error(code, fmt::format(format, std::forward<Args>(args)...)));
}
inline std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

/// Error of a failed system call: errno_value decides the code (ENOSPC -> storage_full; EMFILE -> resource_exhausted; ENOENT -> not_found;
/// ...).
Error system_error(int errno_value, std::string_view doing);

}  // namespace helio

// Declarations, not expressions: statement expressions break coroutines on some compilers.
/// `HELIO_TRY(job, store.get(id));` declares `auto& job`, or returns the error.
#define HELIO_TRY(name, expr)                                                   \
  auto name##_result = (expr);                                                  \
  if (!name##_result) return std::unexpected(std::move(name##_result).error()); \
  auto& name = *name##_result
/// The same for Result<void>.
#define HELIO_CHECK_OK(expr) \
  if (auto helio_ok_result = (expr); !helio_ok_result) return std::unexpected(std::move(helio_ok_result).error())
#define HELIO_CO_TRY(name, expr)                                                   \
  auto name##_result = (expr);                                                     \
  if (!name##_result) co_return std::unexpected(std::move(name##_result).error()); \
  auto& name = *name##_result
