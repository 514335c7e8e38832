#pragma once
// Who makes a request that may come from a browser or from a program.

#include "api/route.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::api {

/// The token in any of the ways that some Ray client has: Bearer, Ray's own header, the password of Basic. Empty: none.
std::string token_of(const net::Request& request);

/// "127.0.0.1:54321" -> "127.0.0.1": wrong tokens are counted by machine.
std::string_view machine_of(std::string_view peer);

inline constexpr std::string_view kSessionCookie = "heliostat_session";
/// Every value of our cookie: one may be for all pages and one for those of a job.
std::vector<std::string> session_cookies(const net::Request& request);
/// "heliostat_session=…; Path=…; HttpOnly; …". `life` of zero forgets it.
std::string set_session_cookie(const net::Request& request, std::string_view secret, std::string_view path, Duration life);

/// A browser's request comes from a page of this server: by Sec-Fetch-Site, and by Origin where a browser sends one.
bool comes_from_here(const net::Request& request);

struct Visitor {
  auth::BrowserIdentity identity;
  bool by_cookie = false;
};

/// Who it is, for pages of `job` (empty: for pages of no job). Nothing when there is neither a token nor a cookie that is good here.
/// Errors: those of Tokens::authenticate for a token that is wrong; not_found for a job that the visitor does not know of.
Result<std::optional<Visitor>> visitor_of(Context& context, const net::Request& request, const std::optional<JobId>& job);
/// The same of a dashboard's job, from memory alone; nothing also means "ask the other way".
std::optional<Visitor> known_visitor(Context& context, const net::Request& request, const service::Dashboard& dashboard);

}  // namespace helio::api
