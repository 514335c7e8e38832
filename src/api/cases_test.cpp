// Runs the declarative cases of tests/api/*.yaml: each against a world of its own.

#include "api/world_for_test.h"
#include "base/json/yaml.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace helio::api {
namespace {

namespace fs = std::filesystem;

using Variables = std::map<std::string, std::string>;

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string fill_in(std::string text, const Variables& variables) {
  for (const auto& [name, value] : variables) {
    const std::string mark = "${" + name + "}";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

std::string text_of(const json::Value& value) { return value.is_string() ? std::string(value.get_string()) : json::dump(value); }

/// Every member of `expected` is in `got`; lists have the same length. "*" stands for any value that is there.
void expect_subset(const json::Value& expected, const json::Value& got, const std::string& path) {
  if (expected.is_string() && std::string_view(expected.get_string()) == "*") return;
  if (const auto* object = expected.if_object()) {
    ASSERT_TRUE(got.is_object()) << path << " is " << json::dump(got);
    for (const auto& member : *object) {
      const auto* found = got.get_object().if_contains(member.key());
      const std::string below = path + "." + std::string(member.key());
      ASSERT_NE(found, nullptr) << below << " is missing in " << json::dump(got);
      expect_subset(member.value(), *found, below);
    }
  } else if (const auto* array = expected.if_array()) {
    ASSERT_TRUE(got.is_array()) << path;
    ASSERT_EQ(array->size(), got.get_array().size()) << path << " is " << json::dump(got);
    for (std::size_t i = 0; i < array->size(); ++i) expect_subset((*array)[i], got.get_array()[i], path + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(json::dump(expected), json::dump(got)) << path;
  }
}

/// {request, as, headers, body | text, status, code, path, says, reply, sends, save}
class Step {
 public:
  Step(const json::Object& step, Variables& variables) : step_(step), variables_(variables) {}

  void run(const World& world) {
    const std::string line = text("request");
    const std::size_t space = line.find(' ');
    SCOPED_TRACE(line);
    net::Headers headers;
    if (const auto* given = step_.if_contains("headers")) {
      for (const auto& header : given->get_object()) headers.emplace_back(header.key(), fill_in(text_of(header.value()), variables_));
    }
    std::string body = text("text");
    if (const auto* document = step_.if_contains("body")) body = fill_in(json::dump(*document), variables_);
    const std::string as = step_.contains("as") ? text("as") : "admin";
    check(world.send(as, line.substr(0, space), line.substr(space + 1), body, headers));
  }

 private:
  std::string text(const char* name) const {
    const auto* found = step_.if_contains(name);
    return found == nullptr ? std::string() : fill_in(text_of(*found), variables_);
  }
  void check(const net::ClientResponse& response) {
    EXPECT_EQ(std::to_string(response.status), text("status")) << response.body;
    if (const auto* sends = step_.if_contains("sends")) {
      for (const auto& header : sends->get_object()) {
        const auto got = net::find_header(response.headers, std::string(header.key()));
        ASSERT_TRUE(got) << header.key();
        EXPECT_EQ(*got, fill_in(text_of(header.value()), variables_));
      }
    }
    if (step_.contains("is")) EXPECT_EQ(response.body, text("is"));
    if (step_.contains("says")) EXPECT_NE(response.body.find(text("says")), std::string::npos) << response.body;
    if (!step_.contains("reply") && !step_.contains("code") && !step_.contains("save") && !step_.contains("path")) return;
    const auto document = json::parse(response.body);
    ASSERT_TRUE(document) << response.body;
    if (step_.contains("code")) {
      const auto type = net::find_header(response.headers, "Content-Type");
      EXPECT_TRUE(type && type->starts_with("application/problem+json"));
      expect_subset(json::Object{{"code", text("code")}, {"status", response.status}}, *document, "$");
    }
    if (step_.contains("path")) expect_subset(json::Object{{"path", text("path")}}, *document, "$");
    if (const auto* reply = step_.if_contains("reply")) {
      expect_subset(*json::parse(fill_in(json::dump(*reply), variables_)), *document, "$");
    }
    if (const auto* save = step_.if_contains("save")) {
      for (const auto& item : save->get_object()) variables_[std::string(item.key())] = text_of(document->at(text_of(item.value())));
    }
  }

  const json::Object& step_;
  Variables& variables_;
};

class Case : public testing::Test {
 public:
  explicit Case(json::Object description) : description_(std::move(description)) {}
  void TestBody() override {
    World world;
    Variables variables{{"home", world.home.root}};
    for (const json::Value& step : description_.at("steps").get_array()) {
      Step(step.get_object(), variables).run(world);
      if (HasFatalFailure()) return;
    }
  }

 private:
  json::Object description_;
};

/// Registers every case before main() runs the tests. A file that cannot be read is a failing case.
const bool kRegistered = [] {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(HELIO_API_CASES)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const auto cases = json::from_yaml(read_file(file));
    if (!cases || !cases->is_array()) {
      fmt::print(stderr, "{}: {}\n", file.string(), cases ? "not a list of cases" : cases.error().text());
      std::abort();
    }
    const std::string suite = "Cases/" + file.stem().string();
    for (const json::Value& item : cases->get_array()) {
      const json::Object& description = item.get_object();
      const std::string name = text_of(description.at("name"));
      testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, file.c_str(), 1,
                            [description]() -> testing::Test* { return new Case(description); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace helio::api
