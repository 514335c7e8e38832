#pragma once
// Starting and stopping the embedded daemon of a home.

#include "cli/context.h"

#include <string>

namespace helio::cli {

struct DaemonUp {
  std::string url;
  std::string version;
  bool started = false;  ///< false: it was up already
};

/// Makes the daemon of this home run: starts `heliostatd` in a session of its own if it does not answer, and waits until it does.
/// A former one that is on its way out is waited for; one of ours that does not come up within 30 s is ended. Errors: not_found (no
/// heliostatd beside this program or in PATH), unavailable with the end of its log when it did not come up.
Result<DaemonUp> daemon_up(const Context& context);

/// Asks the daemon to end and waits for its process; one that cannot be found by its daemon.json is sent SIGTERM. False: nobody holds the
/// data folder. Errors: unavailable (stopped by a signal, or not to be told), deadline_exceeded.
Result<bool> daemon_down(const Context& context, Duration patience);

/// `heliostatd` beside this program, else in PATH.
Result<std::string> find_daemon_program();

}  // namespace helio::cli
