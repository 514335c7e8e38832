#pragma once
// Three strengths of assertion. None may be reachable by input.
//   HELIO_CHECK       always fatal: a broken invariant that would corrupt data
//   HELIO_SOFT_CHECK  logs at error level, counts, goes on; a test that did not announce the line fails
//   HELIO_DCHECK      debug builds only

#include <string_view>

namespace helio::detail {
[[noreturn]] void check_failed(const char* file, int line, std::string_view what);
void soft_check_failed(const char* file, int line, std::string_view what);
}  // namespace helio::detail

namespace helio {
/// How many soft checks have failed in this process. Any thread.
long soft_check_failures();
}  // namespace helio

#define HELIO_CHECK(cond, what)                                           \
  do {                                                                    \
    if (!(cond)) ::helio::detail::check_failed(__FILE__, __LINE__, what); \
  } while (false)
#define HELIO_SOFT_CHECK(cond, what)                                           \
  do {                                                                         \
    if (!(cond)) ::helio::detail::soft_check_failed(__FILE__, __LINE__, what); \
  } while (false)
#ifdef NDEBUG
#define HELIO_DCHECK(cond, what) static_cast<void>(0)
#else
#define HELIO_DCHECK(cond, what) HELIO_CHECK(cond, what)
#endif
