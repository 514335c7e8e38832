#include "cli/ignore.h"

#include <gtest/gtest.h>

namespace helio::cli {
namespace {

TEST(Ignore, globs_stop_at_slashes_unless_doubled) {
  EXPECT_TRUE(glob_match("*.pyc", "a.pyc"));
  EXPECT_FALSE(glob_match("*.pyc", "d/a.pyc"));
  EXPECT_TRUE(glob_match("**/a.pyc", "a.pyc"));
  EXPECT_TRUE(glob_match("**/a.pyc", "x/y/a.pyc"));
  EXPECT_TRUE(glob_match("a/**", "a/b/c"));
  EXPECT_TRUE(glob_match("a/**/c", "a/c"));
  EXPECT_TRUE(glob_match("a/**/c", "a/x/y/c"));
  EXPECT_TRUE(glob_match("f?o", "foo"));
  EXPECT_FALSE(glob_match("f?o", "f/o"));
  EXPECT_TRUE(glob_match("[a-c]1", "b1"));
  EXPECT_FALSE(glob_match("[!a-c]1", "b1"));
  EXPECT_TRUE(glob_match("\\*", "*"));
  EXPECT_FALSE(glob_match("\\*", "x"));
}

TEST(Ignore, a_pattern_without_a_slash_matches_at_any_depth) {
  IgnoreRules rules;
  rules.add_file("*.log\nbuild/\n/top.txt\ndocs/*.md\n# comment\n\n", "");
  EXPECT_TRUE(rules.ignored("a.log", false));
  EXPECT_TRUE(rules.ignored("x/y/a.log", false));
  EXPECT_TRUE(rules.ignored("x/build", true));
  EXPECT_FALSE(rules.ignored("x/build", false));
  EXPECT_TRUE(rules.ignored("top.txt", false));
  EXPECT_FALSE(rules.ignored("x/top.txt", false));
  EXPECT_TRUE(rules.ignored("docs/a.md", false));
  EXPECT_FALSE(rules.ignored("x/docs/a.md", false));
  EXPECT_FALSE(rules.ignored("# comment", false));
}

TEST(Ignore, the_last_match_decides_and_may_take_back) {
  IgnoreRules rules;
  rules.add("*.bin", "");
  rules.add("!keep.bin", "");
  EXPECT_TRUE(rules.ignored("a.bin", false));
  EXPECT_FALSE(rules.ignored("keep.bin", false));
}

TEST(Ignore, rules_of_a_folder_hold_below_it_only) {
  IgnoreRules rules;
  rules.add("data", "sub");
  EXPECT_TRUE(rules.ignored("sub/data", true));
  EXPECT_TRUE(rules.ignored("sub/x/data", true));
  EXPECT_FALSE(rules.ignored("data", true));
  EXPECT_FALSE(rules.ignored("subway/data", true));
}

TEST(Ignore, a_hostile_pattern_costs_no_time) {
  const std::string pattern = "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_TRUE(glob_match(pattern, std::string(4000, 'a')));
}

}  // namespace
}  // namespace helio::cli
