#pragma once
// The log of a job over a websocket, as Ray's clients read it: text frames from the beginning, a clean close after the end.

#include "base/executor.h"
#include "net/websocket.h"
#include "service/logs.h"

#include <memory>
#include <string>

namespace helio::api {

/// Handlers of a session that sends what `reader`, a follower, gives, and closes with 1000 after its end. A reader that fails cuts the
/// connection. `executor` does the reading; it and what the reader needs outlive the session.
net::WsHandlers tail_log(std::shared_ptr<net::WsSession> session, std::unique_ptr<service::LogReader> reader, Executor& executor);

/// Takes text off the front of `held` that does not end within a character of UTF-8; at the `end` all of it. Bytes that are no UTF-8 become
/// "\xff".
std::string take_whole_characters(std::string& held, bool end);

}  // namespace helio::api
