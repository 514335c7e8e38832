#pragma once
// Log facade. Lines go to stderr (journald, or the file that the starter redirected it to). Any thread.
// Never log a secret, a token or a user's environment.

#include <fmt/core.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace helio::log {

enum class Level { debug, info, warn, error };

void set_level(Level level);
/// Program name shown in each line, such as "heliostatd". Call before threads start.
void set_program(std::string_view name);
/// Where stderr is the file `path` and has passed `limit` bytes, that file becomes <path>.1 and a new one is begun, so both together stay
/// below twice the limit. Call before threads start.
void rotate(std::string path, std::int64_t limit);
bool enabled(Level level);
void write(Level level, std::string_view line);
/// Lines at error level so far: a test that announced none asserts that this did not grow.
long errors_logged();

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace helio::log
