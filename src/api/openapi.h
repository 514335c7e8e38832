#pragma once
#include <string>
#include <string_view>

namespace helio::api {

/// The OpenAPI 3.1 document of every route, indented; the same text for the same routes.
std::string openapi_text(std::string_view version);

}  // namespace helio::api
