#pragma once
#include "net/http.h"
#include "service/feed.h"
#include "service/jobs.h"

namespace helio::api {

/// A reply whose body is the job's document, sent when the job has ended or `timeout` has passed; white space keeps the connection alive
/// until then, and no thread is held. Errors: not_found.
Result<net::Response> wait_for_end(service::Jobs& jobs, service::Feed& feed, const JobId& job, Duration timeout);

}  // namespace helio::api
