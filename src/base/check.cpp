#include "base/check.h"

#include "base/log.h"

#include <atomic>
#include <cstdlib>

namespace helio {
namespace {
std::atomic<long> g_soft_failures{0};
}

long soft_check_failures() { return g_soft_failures.load(); }

namespace detail {

void check_failed(const char* file, int line, std::string_view what) {
  log::error("check failed at {}:{}: {}", file, line, what);
  std::abort();
}

void soft_check_failed(const char* file, int line, std::string_view what) {
  ++g_soft_failures;
  log::error("soft check failed at {}:{}: {}", file, line, what);
}

}  // namespace detail
}  // namespace helio
