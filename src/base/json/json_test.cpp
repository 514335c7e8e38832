#include "base/json/json.h"

#include "base/rng.h"

#include <gtest/gtest.h>

namespace helio::json {
namespace {

Value random_value(Rng& rng, int depth) {
  switch (rng.below(depth > 3 ? 4 : 6)) {
    case 0:
      return rng.chance(0.5);
    case 1:
      return static_cast<std::int64_t>(rng.below(2000)) - 1000;
    case 2:
      return static_cast<double>(rng.below(1000)) / 8.0 + 0.0625;
    case 3:
      return Value("s" + std::to_string(rng.below(50)));
    case 4: {
      Array out;
      for (std::uint64_t n = rng.below(4); n > 0; --n) out.push_back(random_value(rng, depth + 1));
      return out;
    }
    default: {
      Object out;
      for (std::uint64_t n = rng.below(4); n > 0; --n) out["k" + std::to_string(rng.below(6))] = random_value(rng, depth + 1);
      return out;
    }
  }
}

TEST(Json, text_round_trips) {
  SeededRng rng(1);
  for (int i = 0; i < 500; ++i) {
    const Value value = random_value(rng, 0);
    EXPECT_EQ(*parse(dump(value)), value);
    EXPECT_EQ(*parse(dump_pretty(value)), value);
  }
}

TEST(Json, a_merge_patch_turns_one_value_into_the_other) {
  SeededRng rng(2);
  for (int i = 0; i < 2000; ++i) {
    const Value from = random_value(rng, 0);
    const Value to = random_value(rng, 0);
    const Value patch = merge_diff(from, to);
    Value target = from;
    merge_apply(target, patch);
    // An empty object inside a patch cannot be told from "no change" when the target is a scalar; objects replace it.
    EXPECT_EQ(target, to) << dump(from) << " -> " << dump(to) << " by " << dump(patch);
  }
}

TEST(Json, malformed_text_is_refused_with_its_place) {
  for (const char* text : {"", "{", "[1,", "{\"a\":}", "nul", "1 2", "\"\\x\"", "{'a':1}", "[1]x"}) {
    const auto value = parse(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code(), ErrorCode::invalid_argument) << text;
    EXPECT_NE(value.error().message().find("at byte"), std::string::npos) << text;
  }
  EXPECT_FALSE(parse(std::string(100, '[') + std::string(100, ']'))) << "deep nesting would overflow the stack of recursive readers";
}

TEST(Json, numbers_outside_their_type_are_refused) {
  EXPECT_FALSE(decode<std::int32_t>(Value(2147483648LL)));
  EXPECT_FALSE(decode<std::int32_t>(Value(1.5)));
  EXPECT_FALSE(decode<std::int64_t>(Value(18446744073709551615ULL)));
  EXPECT_FALSE(decode<std::uint64_t>(Value(-1)));
  EXPECT_FALSE(decode<Bytes>(Value(-1)));
  EXPECT_FALSE(decode<Span>(Value("soon")));
  EXPECT_FALSE(decode<MilliCpu>(Value(-0.5)));
  EXPECT_EQ(decode<MilliCpu>(Value(0.5))->n, 500);
  EXPECT_EQ(decode<Bytes>(Value("2GiB"))->n, 2LL << 30);
  EXPECT_EQ(decode<Span>(Value("10m"))->d, Duration(10min));
}

TEST(Json, numbers_that_could_not_be_written_again_are_refused) {
  for (const char* number : {"1e400", "-2.5e3075808", "1e99999"}) {
    const auto value = parse(std::string(R"({"env":[{"a b":1,"c":)") + number + "}]}");
    ASSERT_FALSE(value) << number;
    EXPECT_EQ(value.error().path(), "$.env[0].c");
  }
  EXPECT_TRUE(parse("[1e308,-1e308,1e-400,18446744073709551616]"));
}

TEST(Json, text_is_valid_whatever_the_strings_hold) {
  const Value value = Object{{"name", "a\xff\xc3(\xc3\xa9"}, {"k\xfe", Array{"\xed\xa0\x80", "12345678\x80"}}};
  for (const std::string& text : {dump(value), dump_pretty(value)}) {
    const auto again = parse(text);
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(std::string_view(again->at("name").get_string()), "a\\xff\\xc3(\xc3\xa9");
    EXPECT_EQ(std::string_view(again->at("k\\xfe").at(0).get_string()), "\\xed\\xa0\\x80");
    EXPECT_EQ(std::string_view(again->at("k\\xfe").at(1).get_string()), "12345678\\x80");
  }
}

TEST(Json, errors_name_the_path) {
  const auto map = decode<std::map<std::string, std::vector<std::int32_t>>>(*parse(R"({"ok":[1],"odd key":[1,"x"]})"));
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().path(), "$['odd key'][1]");
}

}  // namespace
}  // namespace helio::json
