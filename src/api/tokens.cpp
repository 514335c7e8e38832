#include "api/route.h"

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

Result<net::Response> list(Context& context, Call&) {
  HELIO_TRY(found, context.tokens.list());
  json::Array items;
  items.reserve(found.size());
  for (const model::Token& token : found) items.push_back(json::encode(view(token)));
  return reply_list(std::move(items));
}

Result<net::Response> create(Context& context, Call& call) {
  HELIO_TRY(input, call.body<TokenInput>());
  std::string principal = input.principal.value_or(input.name);
  HELIO_TRY(made, context.tokens.create(call.caller.principal, std::move(input.name), std::move(principal), input.role, input.expires,
                                        {std::move(input.workspaces)}));
  net::Response out = reply(NewTokenView{view(made.token), std::move(made.secret)}, 201);
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

Result<net::Response> revoke(Context& context, Call& call) {
  HELIO_CHECK_OK(context.tokens.revoke(call.caller.principal, TokenId(call.param("id"))));
  return no_content();
}

}  // namespace

void add_token_routes(Routes& routes) {
  routes.push_back({"GET",
                    "/v1/tokens",
                    "listTokens",
                    "Who may call, without the secrets",
                    Access{Verb::see, Kind::token},
                    {},
                    nullptr,
                    200,
                    schema_list_of<TokenView>,
                    "application/json",
                    false,
                    list});
  routes.push_back({"POST",
                    "/v1/tokens",
                    "createToken",
                    "Make a token; its secret is in this reply and nowhere else",
                    Access{Verb::create, Kind::token},
                    {},
                    schema_of<TokenInput>,
                    201,
                    schema_of<NewTokenView>,
                    "application/json",
                    false,
                    create});
  routes.push_back({"DELETE",
                    "/v1/tokens/{id}",
                    "revokeToken",
                    "Refuse a token from now on",
                    Access{Verb::remove, Kind::token},
                    {},
                    nullptr,
                    204,
                    nullptr,
                    "",
                    false,
                    revoke});
}

}  // namespace helio::api
