#pragma once
// Answers that go on for long end with the token, or the browser's session, by which they were opened.

#include "api/route.h"

#include <memory>

namespace helio::api {

/// For Response::cord and WsAccept::cord of whatever may go on: a body made piece by piece, a websocket, a request that is carried on.
/// Cut within a second of the end of the token, or of `session` where the caller came with a cookie; at once when that end has come since
/// the caller was let in. Does not block.
std::shared_ptr<net::Cord> tie(Context& context, const TokenId& token, const SessionId& session = {});

}  // namespace helio::api
