#pragma once
// Ray's own Jobs API under /ray/<workspace>, for unmodified Ray clients (`ray job …`, JobSubmissionClient, Airflow). Its replies are Ray's:
// plain text for errors, exactly its keys. No part of the OpenAPI document.

#include "api/route.h"

#include <expected>

namespace helio::api {

/// Who calls, and may do such a thing at all; or the plain text that Ray's clients show.
std::expected<service::Caller, net::Response> ray_caller(Context& context, const net::Request& request, auth::Verb verb, auth::Kind kind);
/// A refusal as Ray writes it: plain text.
net::Response ray_refusal(const Error& error, int status);

/// /ray/<workspace>/clusters/<name>/api/…: the Jobs API of a long-lived cluster, which is Ray's own. `context` outlives the router.
void mount_cluster_jobs(net::Router& router, Context& context);

/// The routes on a router of net/. `context` outlives it.
void mount_ray_front(net::Router& router, Context& context);

}  // namespace helio::api
