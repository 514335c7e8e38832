#include "net/http.h"

#include "base/json/json.h"
#include "net/response_head.h"

#include <gtest/gtest.h>

namespace helio::net {
namespace {

TEST(Http, headers_are_found_whatever_their_case) {
  const Headers headers{{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(find_header(headers, "CONTENT-type"), "a");
  EXPECT_EQ(find_header(headers, "Content"), std::nullopt);
}

TEST(Http, problem_carries_everything_the_error_knows) {
  const Response response = problem(Error(ErrorCode::not_found, "no job j-1").at("$.id").with("job", "j-1"));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(find_header(response.headers, "content-type"), "application/problem+json");
  const auto document = json::parse(response.body);
  ASSERT_TRUE(document);
  const auto& object = document->as_object();
  EXPECT_EQ(object.at("code").as_string(), "not_found");
  EXPECT_EQ(object.at("title").as_string(), "Not Found");
  EXPECT_EQ(object.at("status").as_int64(), 404);
  EXPECT_EQ(object.at("detail").as_string(), "no job j-1");
  EXPECT_EQ(object.at("path").as_string(), "$.id");
  EXPECT_EQ(object.at("args").as_object().at("job").as_string(), "j-1");
}

TEST(Http, problem_is_utf8_whatever_the_message_holds) {
  const Response response = problem(Error(ErrorCode::invalid_argument, "bad \xff\xc3(\xe2\x82\xac \xed\xa0\x80"), 413);
  EXPECT_EQ(response.status, 413);
  const auto document = json::parse(response.body);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->as_object().at("detail").as_string(),
            "bad \xef\xbf\xbd\xef\xbf\xbd(\xe2\x82\xac \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Http, url_encode_leaves_only_unreserved) { EXPECT_EQ(url_encode("a-Z_0.~ /?&=%\xc3\xa9"), "a-Z_0.~%20%2F%3F%26%3D%25%C3%A9"); }

TEST(Http, date) { EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT"); }

TEST(Http, a_line_break_in_a_header_is_no_response) {
  for (const char* value : {"a\r\nX: y", "a\nb", "a\rb"}) {
    Response response = Response::text(200, "x");
    response.headers.emplace_back("X-Name", value);
    std::string out;
    EXPECT_FALSE(write_head(response, {}, out));
  }
  EXPECT_FALSE(is_safe_header("a b", "x"));
  EXPECT_FALSE(is_safe_header("", "x"));
  EXPECT_TRUE(is_safe_header("X-A", "x y"));
}

}  // namespace
}  // namespace helio::net
