#pragma once
#include <cstdint>
#include <string>

namespace helio::agent {

/// Whether something accepts TCP connections there. Meant for loopback addresses, where the answer comes at once; waits 50 ms at most.
bool port_accepts(const std::string& address, std::int32_t port);

}  // namespace helio::agent
