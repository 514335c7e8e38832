#include "net/target.h"

#include <gtest/gtest.h>

namespace helio::net {
namespace {

TEST(Target, path_and_query_are_decoded) {
  const auto target = parse_target("/v1/jobs/a%20b%2Fc?name=x+y%26z&flag&name=last&=e");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"v1", "jobs", "a b/c"}));
  EXPECT_EQ(target->path, "/v1/jobs/a b/c");
  EXPECT_EQ(target->query.at("name"), "last");
  EXPECT_EQ(target->query.at("flag"), "");
  EXPECT_EQ(target->query.at(""), "e");
}

TEST(Target, a_plus_in_the_path_stays_a_plus) { EXPECT_EQ(parse_target("/a+b")->path, "/a+b"); }

TEST(Target, absolute_form_loses_its_origin) {
  EXPECT_EQ(parse_target("http://host:80/x?y=1")->path, "/x");
  EXPECT_EQ(parse_target("http://host")->path, "/");
}

TEST(Target, trailing_slash_is_a_segment) {
  EXPECT_EQ(parse_target("/a/")->segments, (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(parse_target("/")->segments, (std::vector<std::string>{""}));
}

TEST(Target, bad_input_is_refused) {
  for (const char* text : {"/%", "/%4", "/%zz", "/a%00b", "/a/../b", "/a/%2e%2e/b", "/.", "x", "*", "/a#b", "/x?a=%", "/x?%00=1"}) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code(), ErrorCode::invalid_argument) << text;
  }
}

TEST(Url, parts) {
  const auto url = parse_url("http://127.0.0.1:8265/prefix/x", "http");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "127.0.0.1");
  EXPECT_EQ(url->port, "8265");
  EXPECT_EQ(url->authority, "127.0.0.1:8265");
  EXPECT_EQ(url->path, "/prefix/x");
  EXPECT_EQ(parse_url("http://[::1]:99", "http")->host, "::1");
  EXPECT_EQ(parse_url("ws://h", "ws")->port, "80");
  EXPECT_EQ(parse_url("http://h", "ws")->host, "h");
  EXPECT_EQ(parse_url("https://h", "http")->port, "443");
  EXPECT_TRUE(parse_url("https://h", "http")->secure);
  EXPECT_FALSE(parse_url("http://h", "http")->secure);
}

TEST(Url, bad_ones_are_refused) {
  for (const char* text : {"", "host:80", "ftp://h", "http://", "http://h:0", "http://h:65536", "http://h:x", "http://u@h", "http://[::1",
                           "http://[::1]x", "http://h/a b", "http://h/#f", "ws://h"}) {
    const auto url = parse_url(text, "http");
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code(), ErrorCode::invalid_argument) << text;
  }
  EXPECT_EQ(parse_url("wss://h", "ws").error().code(), ErrorCode::unimplemented);
  EXPECT_EQ(parse_url("https://h", "ws").error().code(), ErrorCode::unimplemented);
}

}  // namespace
}  // namespace helio::net
