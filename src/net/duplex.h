#pragma once
#include "net/tls_client.h"

#include <string>

namespace helio::net {

/// Copies between two connected sockets that do not block until both have ended, one of them some seconds after the other, or `stop` (a
/// descriptor) becomes readable. `tls`, if any, is of `remote`; `ahead` has come from there already. Blocks; closes neither.
void join_sockets(int local, int remote, TlsClient* tls, std::string ahead, int stop);

}  // namespace helio::net
