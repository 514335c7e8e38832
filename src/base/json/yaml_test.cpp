#include "base/json/yaml.h"

#include <gtest/gtest.h>

namespace helio::json {
namespace {

TEST(Yaml, a_job_file_reads_as_expected) {
  const auto value = from_yaml(R"(
name: tune
entrypoint:
  argv: [python, train.py, "--lr", "1e-3"]
workers:
  - count: 2
    flavor: small
env:
  - {name: N, value: "1"}
head: {schedulable: false}
limits: {run: 10m}
nothing: ~
share: 0.5
)");
  ASSERT_TRUE(value) << value.error().text();
  EXPECT_EQ(value->at("entrypoint").at("argv").at(3), Value("1e-3"));
  EXPECT_EQ(value->at("workers").at(0).at("count"), Value(2));
  EXPECT_EQ(value->at("env").at(0).at("value"), Value("1"));
  EXPECT_EQ(value->at("head").at("schedulable"), Value(false));
  EXPECT_TRUE(value->at("nothing").is_null());
  EXPECT_EQ(value->at("share"), Value(0.5));
}

TEST(Yaml, what_is_written_reads_back) {
  const Value value = *parse(
      R"({"a":"true","b":"1","c":"","d":"x: y","e":"line 1\nline 2\n","f":[],"g":{},"h":[1,2.5,false],"i":"# no comment","j":"~","k":"null","l":" lead","m":"1e3","n":"é","o":"- x","p":"tail \n"})");
  const std::string text = to_yaml(value);
  const auto back = from_yaml(text);
  ASSERT_TRUE(back) << back.error().text() << "\n" << text;
  EXPECT_EQ(*back, value) << text;
}

TEST(Yaml, any_text_and_null_read_back) {
  for (const char* text :
       {"a\nb", "a\nb\n\n", "\nfirst line empty\n", "  indented\nnot\n", "\tx\ny\n", "\n", "a\r\nb\n", "#!/bin/sh\necho hi\n", "a \nb\n"}) {
    const Value value = Object{{"script", text}, {"list", Array{nullptr, text}}};
    const auto back = from_yaml(to_yaml(value));
    ASSERT_TRUE(back) << back.error().text() << "\n" << to_yaml(value);
    EXPECT_EQ(*back, value) << to_yaml(value);
  }
}

TEST(Yaml, mistakes_have_a_line) {
  const auto broken = from_yaml("a: 1\nb: [1,\n");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message().find("line"), std::string::npos);
  const auto twice = from_yaml("a: 1\na: 2\n");
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message().find("twice"), std::string::npos);
}

TEST(Yaml, a_bomb_is_refused) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 8; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  }
  const auto value = from_yaml(bomb);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace helio::json
