#include "api/route.h"

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

bool is_digest(std::string_view text) {
  if (text.size() != 64) return false;
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

Result<net::Response> put(Context& context, Call& call) {
  const std::string& digest = call.param("sha256");
  if (!is_digest(digest)) return fail(Error(ErrorCode::invalid_argument, "expected 64 lower-case hex digits").at("path.sha256"));
  if (call.request.body_file.empty()) return fail(Error(ErrorCode::invalid_argument, "a zip file is expected as body").at("$"));
  HELIO_CHECK_OK(context.packages.put(digest, call.request.body_file));
  return reply(PackageView{PackageId(digest)}, 201);
}

Result<net::Response> exists(Context& context, Call& call) {
  const std::string& digest = call.param("sha256");
  if (!is_digest(digest) || !context.packages.exists(digest)) return fail(ErrorCode::not_found, "no package '{}'", digest);
  return reply(PackageView{PackageId(digest)});
}

}  // namespace

void add_package_routes(Routes& routes) {
  routes.push_back({"PUT",
                    "/v1/packages/{sha256}",
                    "putPackage",
                    "Upload a zip, named by its SHA-256",
                    Access{Verb::create, Kind::package},
                    {},
                    nullptr,
                    201,
                    schema_of<PackageView>,
                    "application/json",
                    true,
                    put});
  routes.push_back({"GET",
                    "/v1/packages/{sha256}",
                    "getPackage",
                    "Is this package here?",
                    Access{Verb::see, Kind::package},
                    {},
                    nullptr,
                    200,
                    schema_of<PackageView>,
                    "application/json",
                    false,
                    exists});
  routes.push_back({"HEAD",
                    "/v1/packages/{sha256}",
                    "headPackage",
                    "Is this package here?",
                    Access{Verb::see, Kind::package},
                    {},
                    nullptr,
                    200,
                    nullptr,
                    "",
                    false,
                    exists});
}

}  // namespace helio::api
