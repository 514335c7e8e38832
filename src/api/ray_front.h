#pragma once
// Ray's own Jobs API under /ray/<workspace>, for unmodified Ray clients (`ray job …`, JobSubmissionClient, Airflow). Its replies are Ray's:
// plain text for errors, exactly its keys. No part of the OpenAPI document.

#include "api/route.h"

namespace helio::api {

/// The routes on a router of net/. `context` outlives it.
void mount_ray_front(net::Router& router, Context& context);

}  // namespace helio::api
