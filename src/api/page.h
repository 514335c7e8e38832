#pragma once
// The few pages that heliostat itself shows in a browser: plain HTML, no script.

#include "net/http.h"

#include <string>
#include <string_view>

namespace helio::api {

enum class Language { en, zh };
/// By Accept-Language.
Language language_of(const net::Request& request);

/// The request comes from somebody who looks at a page, not from a program.
bool wants_page(const net::Request& request);

std::string escape_html(std::string_view text);

struct Page {
  int status = 200;
  Language language = Language::en;
  std::string title;  ///< text
  std::string body;   ///< HTML
  int refresh_s = 0;  ///< load again after so many seconds; 0: never
};
net::Response show(const Page& page);

}  // namespace helio::api
