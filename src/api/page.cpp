#include "api/page.h"

#include <fmt/format.h>

namespace helio::api {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#1d2330;background:#f6f7f9}"
    "main{max-width:60rem;margin:3rem auto;padding:2rem;background:#fff;border:1px solid #dde1e7;border-radius:6px}"
    "h1{font-size:1.4rem;margin-top:0}h2{font-size:1.05rem;margin-top:2rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #e6e9ee;"
    "vertical-align:top}pre{background:#f0f2f5;padding:1rem;overflow:auto;max-height:32rem}"
    "input{font:inherit;padding:.4rem;width:26rem;max-width:100%}button{font:inherit;padding:.4rem 1rem}"
    ".why{border-left:4px solid #c0392b;padding-left:1rem}.dim{color:#667}";

}  // namespace

Language language_of(const net::Request& request) {
  // The first language is the one that is wanted most; servers of two languages need no more of the header than that.
  const auto header = request.header("Accept-Language");
  return header && header->starts_with("zh") ? Language::zh : Language::en;
}

bool wants_page(const net::Request& request) {
  const auto accept = request.header("Accept");
  return request.method == "GET" && accept && accept->contains("text/html");
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

net::Response show(const Page& page) {
  net::Response out;
  out.status = page.status;
  out.headers.emplace_back("Content-Type", "text/html; charset=utf-8");
  out.headers.emplace_back("Cache-Control", "no-store");
  out.headers.emplace_back("Content-Security-Policy",
                           "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
  out.headers.emplace_back("X-Content-Type-Options", "nosniff");
  out.headers.emplace_back("Referrer-Policy", "same-origin");
  const std::string refresh =
      page.refresh_s > 0 ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">", page.refresh_s) : std::string();
  out.body = fmt::format(
      "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">{}"
      "<title>{} · heliostat</title><style>{}</style></head><body><main>{}</main></body></html>\n",
      page.language == Language::zh ? "zh-CN" : "en", refresh, escape_html(page.title), kStyle, page.body);
  return out;
}

}  // namespace helio::api
