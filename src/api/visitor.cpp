#include "api/visitor.h"

#include "base/base64.h"

#include <fmt/format.h>

namespace helio::api {
namespace {

bool is_for(const auth::BrowserIdentity& identity, const std::optional<JobId>& job) { return !identity.job || identity.job == job; }

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string token_of(const net::Request& request) {
  for (const std::string_view name : {"Authorization", "X-Ray-Authorization"}) {
    const auto header = request.header(name);
    if (!header) continue;
    if (header->starts_with("Bearer ")) return std::string(header->substr(7));
    if (header->starts_with("Basic ")) {
      const auto pair = base64_decode(header->substr(6));
      if (pair && pair->contains(':')) return pair->substr(pair->find(':') + 1);
    }
  }
  return {};
}

std::string_view machine_of(std::string_view peer) { return peer.substr(0, peer.rfind(':')); }

std::vector<std::string> session_cookies(const net::Request& request) {
  std::vector<std::string> out;
  for (const auto& [name, value] : request.headers) {
    if (!net::same_header(name, "Cookie")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view item = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::size_t equals = item.find('=');
      if (equals != std::string_view::npos && item.substr(0, equals) == kSessionCookie) out.emplace_back(item.substr(equals + 1));
    }
  }
  return out;
}

std::string set_session_cookie(const net::Request& request, std::string_view secret, std::string_view path, Duration life) {
  return fmt::format("{}={}; Path={}; HttpOnly; SameSite=Lax; Max-Age={}{}", kSessionCookie, secret, path,
                     std::chrono::duration_cast<std::chrono::seconds>(life).count(), request.secure ? "; Secure" : "");
}

bool comes_from_here(const net::Request& request) {
  const auto site = request.header("Sec-Fetch-Site");
  if (site && *site != "same-origin") return false;
  const auto origin = request.header("Origin");
  if (!origin) return site.has_value();
  const std::size_t mark = origin->find("://");
  return mark != std::string_view::npos && request.header("Host") == origin->substr(mark + 3);
}

Result<std::optional<Visitor>> visitor_of(Context& context, const net::Request& request, const std::optional<JobId>& job) {
  const auto check_known = [&](const auth::Identity& who) { return job ? context.jobs.check_known(who.scope, *job) : Result<void>(); };
  if (const std::string token = token_of(request); !token.empty()) {
    HELIO_TRY(who, context.tokens.authenticate(token, machine_of(request.peer)));
    HELIO_CHECK_OK(check_known(who));
    return std::optional(Visitor{{std::move(who), {}, false}, false});
  }
  std::optional<Visitor> looks;
  std::optional<Error> stranger;
  for (const std::string& cookie : session_cookies(request)) {
    HELIO_TRY(found, context.sessions.find(cookie));
    if (!found || !is_for(*found, job)) continue;
    if (auto known = check_known(found->who); !known) {
      stranger = std::move(known.error());
      continue;
    }
    // Of a link that only looks and a login, the login is what somebody wants to act with.
    if (!found->read_only) return std::optional(Visitor{std::move(*found), true});
    looks = Visitor{std::move(*found), true};
  }
  if (!looks && stranger) return fail(std::move(*stranger));
  return looks;
}

std::optional<Visitor> known_visitor(Context& context, const net::Request& request, const service::Dashboard& dashboard) {
  if (const std::string token = token_of(request); !token.empty()) {
    auto who = context.tokens.known(token);
    return who && who->scope.holds(dashboard.workspace) ? std::optional(Visitor{{std::move(*who), {}, false}, false}) : std::nullopt;
  }
  std::optional<Visitor> looks;
  for (const std::string& cookie : session_cookies(request)) {
    auto found = context.sessions.known(cookie);
    if (!found || !is_for(*found, dashboard.job) || !found->who.scope.holds(dashboard.workspace)) continue;
    if (!found->read_only) return Visitor{std::move(*found), true};
    looks = Visitor{std::move(*found), true};
  }
  return looks;
}

}  // namespace helio::api
