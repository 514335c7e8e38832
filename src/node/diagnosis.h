#pragma once
// Reads causes out of what Ray prints and records. Texts are the shortest fragments that Ray 2.9 to 2.60 have in common.

#include "base/clock.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace helio::node {

/// How long after the first fall its consequences are awaited before a cause is named.
inline constexpr Duration kSettle = 300ms;

/// Which children `ray start --block` says have ended unexpectedly.
struct StartReport {
  bool gcs = false;
  bool raylet = false;
  bool dashboard = false;
  std::string other;  ///< any further child, such as log_monitor
};
StartReport read_start_report(std::string_view log_tail);

/// Why `ray start` could not bring a node up.
enum class StartProblem { unknown, port_in_use, image_broken };
struct StartFinding {
  StartProblem problem = StartProblem::unknown;
  std::string line;  ///< that says it, at most 300 bytes; the last line when none does
};
StartFinding read_start_problem(std::string_view log_tail, std::optional<std::int32_t> exit_code);

/// Why a submitted entrypoint failed other than by its own exit code.
enum class DriverProblem { none, runtime_env, supervisor, unschedulable, start_timeout, not_started };
/// `error_type` is null (empty) before Ray 2.50: then the message decides.
DriverProblem read_driver_problem(std::string_view error_type, std::string_view message);

/// The last line that is not blank, without surrounding space, at most 300 bytes.
std::string last_line(std::string_view text);

}  // namespace helio::node
