#pragma once
#include "api/route.h"

namespace helio::api {

/// What `query` selects, as plain text, streamed. Errors: those of service::Logs::open.
Result<net::Response> log_text(Context& context, const JobId& job, const service::LogQuery& query);

}  // namespace helio::api
