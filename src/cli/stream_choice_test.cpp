#include "cli/stream_choice.h"

#include <gtest/gtest.h>

namespace helio::cli {
namespace {

StreamRow row(const char* node, const char* stream) { return {1, node, stream, "ray", 0, false}; }

TEST(StreamChoice, a_node_is_one_that_the_job_has) {
  model::JobSpec spec;
  spec.workers = {{.name = "a", .count = 1}, {.name = "b", .count = 1}};
  EXPECT_EQ(choose_node(spec, "w2").value(), "w2");
  EXPECT_EQ(choose_node(spec, "head").value(), "head");
  EXPECT_EQ(choose_node(spec, "j-0123456789abcdef-1-h").value(), "head");
  const auto none = choose_node(spec, "w9");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), "not_found: no node w9; there are head, w1, w2");
  EXPECT_FALSE(choose_node(spec, "w0"));
  EXPECT_FALSE(choose_node(spec, ""));
  spec.workers = {{.name = "a", .count = 64}};
  EXPECT_EQ(choose_node(spec, "x").error().message(), "no node x; there are head, w1, w2, w3, …, w64");
  EXPECT_EQ(choose_node({}, "w1").error().message(), "no node w1; there is only head");
}

TEST(StreamChoice, a_stream_is_meant_by_its_name_a_pattern_or_its_only_beginning) {
  const std::vector<StreamRow> there{row("w1", "worker-a.out"), row("w1", "worker-b.out"), row("w1", "raylet.out"), row("w1", "raylet")};
  const std::vector<StreamRow> elsewhere{row("head", "driver")};
  using Names = std::vector<std::string>;
  EXPECT_EQ(choose_streams(there, elsewhere, "w1", "raylet").value(), Names{"raylet"});
  EXPECT_EQ(choose_streams(there, elsewhere, "w1", "worker-b").value(), Names{"worker-b.out"});
  EXPECT_EQ(choose_streams(there, elsewhere, "w1", "worker-*").value(), (Names{"worker-a.out", "worker-b.out"}));
  const auto several = choose_streams(there, elsewhere, "w1", "worker");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code(), ErrorCode::conflict);
  EXPECT_NE(several.error().message().find("worker-a.out, worker-b.out"), std::string::npos);
  const auto other = choose_streams(there, elsewhere, "w1", "driv");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::not_found);
  EXPECT_NE(other.error().message().find("--node head"), std::string::npos);
  const auto none = choose_streams(there, elsewhere, "w1", "x*");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("raylet.out"), std::string::npos);
}

}  // namespace
}  // namespace helio::cli
