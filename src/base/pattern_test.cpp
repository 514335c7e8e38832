#include "base/pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace helio {
namespace {

TEST(Pattern, finds_what_users_look_for) {
  const auto pattern = Pattern::compile("loss=\\d+|(?i)error");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->occurs_in("step 3 loss=17"));
  EXPECT_TRUE(pattern->occurs_in("ERROR: no"));
  EXPECT_FALSE(pattern->occurs_in("all is well"));
}

TEST(Pattern, says_what_is_wrong) {
  const auto pattern = Pattern::compile("(");
  ASSERT_FALSE(pattern);
  EXPECT_EQ(pattern.error().code(), ErrorCode::invalid_argument);
  EXPECT_NE(pattern.error().message().find("missing )"), std::string::npos) << pattern.error().message();
  EXPECT_FALSE(Pattern::compile(std::string(1001, 'a')));
}

TEST(Pattern, takes_linear_time_where_backtracking_would_explode) {
  const auto pattern = Pattern::compile("(a*)*b");
  ASSERT_TRUE(pattern);
  EXPECT_FALSE(pattern->occurs_in(std::string(100'000, 'a')));
}

}  // namespace
}  // namespace helio
