#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace helio {
namespace {

struct Row {
  ErrorCode code;
  std::string_view name;
  int http;
  int exit;
};

// Exit codes: docs/en/cli.md lists them for users.
constexpr std::array kTable{
    Row{ErrorCode::invalid_argument, "invalid_argument", 400, 64},
    Row{ErrorCode::unauthenticated, "unauthenticated", 401, 65},
    Row{ErrorCode::permission_denied, "permission_denied", 403, 66},
    Row{ErrorCode::not_found, "not_found", 404, 67},
    Row{ErrorCode::already_exists, "already_exists", 409, 68},
    Row{ErrorCode::conflict, "conflict", 409, 69},
    Row{ErrorCode::precondition_failed, "precondition_failed", 412, 70},
    Row{ErrorCode::resource_exhausted, "resource_exhausted", 429, 71},
    Row{ErrorCode::unavailable, "unavailable", 503, 72},
    Row{ErrorCode::deadline_exceeded, "deadline_exceeded", 504, 73},
    Row{ErrorCode::cancelled, "cancelled", 499, 74},
    Row{ErrorCode::unimplemented, "unimplemented", 501, 75},
    Row{ErrorCode::internal, "internal", 500, 76},
    Row{ErrorCode::storage_full, "storage_full", 507, 77},
};

const Row& row(ErrorCode code) { return kTable[static_cast<std::size_t>(code)]; }

}  // namespace

std::string_view to_string(ErrorCode code) { return row(code).name; }
int http_status(ErrorCode code) { return row(code).http; }
int cli_exit_code(ErrorCode code) { return row(code).exit; }

std::optional<ErrorCode> error_code_from_string(std::string_view text) {
  for (const Row& r : kTable) {
    if (r.name == text) return r.code;
  }
  return std::nullopt;
}

std::string Error::text() const {
  std::string out(to_string(code_));
  if (!path_.empty()) out += " at " + path_;
  out += ": " + message_;
  for (const auto& [key, value] : args_) out += fmt::format(" [{}={}]", key, value);
  return out;
}

Error system_error(int errno_value, std::string_view doing) {
  ErrorCode code = ErrorCode::internal;
  switch (errno_value) {
    case ENOENT:
    case ESRCH:
      code = ErrorCode::not_found;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = ErrorCode::permission_denied;
      break;
    case EEXIST:
      code = ErrorCode::already_exists;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = ErrorCode::storage_full;
      break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = ErrorCode::resource_exhausted;
      break;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EADDRINUSE:
      code = ErrorCode::unavailable;
      break;
    case ETIMEDOUT:
      code = ErrorCode::deadline_exceeded;
      break;
    case EINVAL:
      code = ErrorCode::invalid_argument;
      break;
    default:
      break;
  }
  return Error(code, fmt::format("{}: {}", doing, std::strerror(errno_value)));  // NOLINT(concurrency-mt-unsafe): glibc's is
}

}  // namespace helio
