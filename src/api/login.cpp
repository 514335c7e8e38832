// /login and /logout: a token becomes a cookie, and ends.

#include "api/browser.h"
#include "api/page.h"
#include "api/visitor.h"
#include "base/log.h"
#include "net/target.h"

#include <fmt/format.h>

namespace helio::api {
namespace {

/// A form's fields. Error: invalid_argument for a bad escape.
Result<std::map<std::string, std::string>> form_of(std::string_view body) {
  std::map<std::string, std::string> out;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('&'), body.size());
    const std::string_view item = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    const std::size_t equals = std::min(item.find('='), item.size());
    HELIO_TRY(name, net::percent_decode(item.substr(0, equals), net::Plus::is_space));
    HELIO_TRY(value, net::percent_decode(item.substr(std::min(equals + 1, item.size())), net::Plus::is_space));
    out.insert_or_assign(std::move(name), std::move(value));
  }
  return out;
}

/// Only a page of ours: a link must not send whoever logs in elsewhere.
std::string safe_next(const std::string& next) {
  bool plain = next.starts_with("/jobs/");
  for (const char c : next) plain = plain && c > ' ' && c < 0x7f && c != '\\' && c != '#';
  return plain ? next : std::string();
}

net::Response go_to(std::string_view where) {
  net::Response out;
  out.status = 303;
  out.headers.emplace_back("Location", where);
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

net::Response form(const net::Request& request, const std::string& next, int status, std::string_view why) {
  const bool zh = language_of(request) == Language::zh;
  std::string body = fmt::format("<h1>{}</h1>", zh ? "登录 heliostat" : "Log in to heliostat");
  if (!why.empty()) body += fmt::format("<p class=\"why\">{}</p>", escape_html(why));
  body += fmt::format(
      "<form method=\"post\" action=\"/login\"><input type=\"hidden\" name=\"next\" value=\"{}\">"
      "<p><label>{}<br><input type=\"password\" name=\"token\" autocomplete=\"current-password\" autofocus required></label></p>"
      "<p><button>{}</button></p></form><p class=\"dim\">{}</p>",
      escape_html(next), zh ? "API 令牌" : "API token", zh ? "登录" : "Log in",
      zh ? "令牌由 <code>helio tokens create</code> 生成；<code>helio dashboard JOB</code> 可打印无需登录的一次性链接。"
         : "<code>helio tokens create</code> makes a token; <code>helio dashboard JOB</code> prints a link that needs no login, once.");
  return show({status, language_of(request), zh ? "登录" : "Log in", std::move(body)});
}

net::Response who_is_here(const net::Request& request, const Visitor& visitor) {
  const bool zh = language_of(request) == Language::zh;
  return show({200, language_of(request), zh ? "已登录" : "Logged in",
               fmt::format("<h1>{}</h1><p>{} {} ({})</p><form method=\"post\" action=\"/logout\"><button>{}</button></form>",
                           zh ? "已登录" : "Logged in", zh ? "当前身份：" : "You are", escape_html(visitor.identity.who.principal),
                           json::enum_name(visitor.identity.who.role), zh ? "退出登录" : "Log out")});
}

net::Response refused(const net::Request& request, const Error& error) {
  return show({http_status(error.code()), language_of(request), "heliostat",
               fmt::format("<h1>heliostat</h1><p class=\"why\">{}</p>", escape_html(error.message()))});
}

net::Response get_login(Context& context, net::Request& request) {
  const auto next = request.query.find("next");
  auto visitor = visitor_of(context, request, {});
  if (!visitor) return refused(request, visitor.error());
  if (*visitor && next == request.query.end()) return who_is_here(request, **visitor);
  return form(request, next == request.query.end() ? std::string() : safe_next(next->second), 200, {});
}

net::Response post_login(Context& context, net::Request& request) {
  if (request.header("Origin") && !comes_from_here(request)) {
    return refused(request, Error(ErrorCode::permission_denied, "this form was sent by another site"));
  }
  auto fields = form_of(request.body);
  if (!fields) return refused(request, fields.error());
  const std::string next = safe_next((*fields)["next"]);
  auto made = context.sessions.login((*fields)["token"], machine_of(request.peer));
  if (!made) {
    if (made.error().code() == ErrorCode::internal) log::error("login: {}", made.error().text());
    return form(request, next, http_status(made.error().code()), made.error().message());
  }
  net::Response out = go_to(next.empty() ? "/login" : next);
  out.headers.emplace_back("Set-Cookie", set_session_cookie(request, made->secret, "/", auth::kSessionLife));
  return out;
}

net::Response post_logout(Context& context, net::Request& request) {
  if (!comes_from_here(request)) return refused(request, Error(ErrorCode::permission_denied, "this form was sent by another site"));
  for (const std::string& cookie : session_cookies(request)) {
    if (auto out = context.sessions.logout(cookie); !out) return refused(request, out.error());
  }
  net::Response out = go_to("/login");
  out.headers.emplace_back("Set-Cookie", set_session_cookie(request, "", "/", Duration(0)));
  return out;
}

}  // namespace

void mount_login(net::Router& router, Context& context) {
  constexpr std::size_t kFormLimit = 8U << 10U;
  net::RouteOptions form;
  form.body_limit = kFormLimit;
  router.add("GET", "/login", {}, [&context](net::Request& request) { return get_login(context, request); });
  router.add("POST", "/login", form, [&context](net::Request& request) { return post_login(context, request); });
  router.add("POST", "/logout", form, [&context](net::Request& request) { return post_logout(context, request); });
}

}  // namespace helio::api
