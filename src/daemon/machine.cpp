#include "daemon/machine.h"

#include "proc/files.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <charconv>
#include <memory>
#include <set>
#include <string_view>

namespace helio::daemon {
namespace {

/// Number behind "Name:" in /proc/self/status.
std::int64_t field(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  const std::size_t digit = status.find_first_of("0123456789", at + name.size());
  if (digit == std::string_view::npos) return 0;
  std::int64_t value = 0;
  std::from_chars(status.data() + digit, status.data() + status.size(), value);
  return value;
}

}  // namespace

OwnUse own_use() {
  const auto status = proc::read_file("/proc/self/status", 1U << 16U);
  if (!status) return {};
  return {Bytes{field(*status, "VmRSS:") << 10}, field(*status, "Threads:")};
}

std::string interface_of_nodes() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::set<std::string> outside;
  std::string loopback;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if ((at->ifa_flags & IFF_UP) == 0 || at->ifa_addr == nullptr) continue;
    if ((at->ifa_flags & IFF_LOOPBACK) != 0) {
      loopback = at->ifa_name;
    } else {
      outside.insert(at->ifa_name);
    }
  }
  // All nodes of this backend are on one machine, at addresses of its loopback interface.
  return outside.size() > 1 ? loopback : std::string();
}

}  // namespace helio::daemon
