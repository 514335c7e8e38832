#pragma once
// What a browser sees of heliostat: logging in and out, a job's Ray dashboard, and what is kept of a job after its cluster.
// docs/en/dashboard.md says what users may rely on.

#include "api/route.h"

namespace helio::api {

/// GET and POST /login, POST /logout, /jobs/{id}/dashboard/…, /jobs/{id}/log. `context` outlives the router.
void mount_browser(net::Router& router, Context& context);

// One file each.
void mount_login(net::Router& router, Context& context);
void mount_dashboard(net::Router& router, Context& context);

/// The page that stands where the dashboard of an ended job was: its outcome, attempts, nodes, where the time went, the end of its log.
Result<net::Response> kept_record(Context& context, const JobId& job, const net::Request& request);

}  // namespace helio::api
