#include "api/route.h"

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

/// The body of a PUT, whose name stands in the path: it may be left out of the body, and must not differ.
template <class T>
Result<T> named_body(const Call& call) {
  if (call.request.body.empty()) return fail(Error(ErrorCode::invalid_argument, "a JSON document is expected as body").at("$"));
  HELIO_TRY(value, json::parse(call.request.body));
  if (auto* object = value.if_object()) {
    const std::string& name = call.param("name");
    const auto* given = object->if_contains("name");
    if (given != nullptr && (!given->is_string() || std::string_view(given->get_string()) != name)) {
      return fail(Error(ErrorCode::invalid_argument, "the name differs from the one in the path").at("$.name"));
    }
    (*object)["name"] = name;
  }
  return json::decode<T>(value);
}

Result<net::Response> list_flavors(Context& context, Call&) {
  HELIO_TRY(found, context.flavors.list());
  return reply_list(encode_all(found));
}

Result<net::Response> get_flavor(Context& context, Call& call) {
  HELIO_TRY(found, context.flavors.list());
  for (const model::Flavor& flavor : found) {
    if (flavor.name.value == call.param("name")) return reply(flavor);
  }
  return fail(ErrorCode::not_found, "no flavor '{}'", call.param("name"));
}

Result<net::Response> put_flavor(Context& context, Call& call) {
  HELIO_TRY(flavor, named_body<model::Flavor>(call));
  HELIO_TRY(stored, context.flavors.put(call.caller, flavor));
  return reply(stored);
}

Result<net::Response> remove_flavor(Context& context, Call& call) {
  HELIO_CHECK_OK(context.flavors.remove(call.caller, call.param("name")));
  return no_content();
}

Result<net::Response> list_images(Context& context, Call&) {
  HELIO_TRY(found, context.images.list());
  return reply_list(encode_all(found));
}

Result<net::Response> get_image(Context& context, Call& call) {
  HELIO_TRY(found, context.images.get(call.param("name")));
  return reply(found);
}

Result<net::Response> put_image(Context& context, Call& call) {
  HELIO_TRY(image, named_body<model::Image>(call));
  HELIO_TRY(stored, context.images.add(call.caller, image));
  return reply(stored);
}

Result<net::Response> remove_image(Context& context, Call& call) {
  HELIO_CHECK_OK(context.images.remove(call.caller, call.param("name")));
  return no_content();
}

}  // namespace

void add_catalog_routes(Routes& routes) {
  using model::Flavor;
  using model::Image;
  routes.push_back({"GET",
                    "/v1/flavors",
                    "listFlavors",
                    "Shapes of nodes",
                    Access{Verb::see, Kind::flavor},
                    {},
                    nullptr,
                    200,
                    schema_list_of<Flavor>,
                    "application/json",
                    false,
                    list_flavors});
  routes.push_back({"GET",
                    "/v1/flavors/{name}",
                    "getFlavor",
                    "One flavor",
                    Access{Verb::see, Kind::flavor},
                    {},
                    nullptr,
                    200,
                    schema_of<Flavor>,
                    "application/json",
                    false,
                    get_flavor});
  routes.push_back({"PUT",
                    "/v1/flavors/{name}",
                    "putFlavor",
                    "Make or change a flavor",
                    Access{Verb::change, Kind::flavor},
                    {},
                    schema_of<Flavor>,
                    200,
                    schema_of<Flavor>,
                    "application/json",
                    false,
                    put_flavor});
  routes.push_back({"DELETE",
                    "/v1/flavors/{name}",
                    "removeFlavor",
                    "Remove a flavor",
                    Access{Verb::remove, Kind::flavor},
                    {},
                    nullptr,
                    204,
                    nullptr,
                    "",
                    false,
                    remove_flavor});
  routes.push_back({"GET",
                    "/v1/images",
                    "listImages",
                    "Registered Python prefixes",
                    Access{Verb::see, Kind::image},
                    {},
                    nullptr,
                    200,
                    schema_list_of<Image>,
                    "application/json",
                    false,
                    list_images});
  routes.push_back({"GET",
                    "/v1/images/{name}",
                    "getImage",
                    "One image",
                    Access{Verb::see, Kind::image},
                    {},
                    nullptr,
                    200,
                    schema_of<Image>,
                    "application/json",
                    false,
                    get_image});
  routes.push_back({"PUT",
                    "/v1/images/{name}",
                    "putImage",
                    "Check a Python prefix and register it",
                    Access{Verb::change, Kind::image},
                    {},
                    schema_of<Image>,
                    200,
                    schema_of<Image>,
                    "application/json",
                    false,
                    put_image});
  routes.push_back({"DELETE",
                    "/v1/images/{name}",
                    "removeImage",
                    "Forget an image",
                    Access{Verb::remove, Kind::image},
                    {},
                    nullptr,
                    204,
                    nullptr,
                    "",
                    false,
                    remove_image});
}

}  // namespace helio::api
