#include "cli/client_python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace helio::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClientPythonTest : public ::testing::Test {
 protected:
  ClientPythonTest() {
    std::string name = "/tmp/helio-python-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    dir = name;
  }
  ~ClientPythonTest() override { std::filesystem::remove_all(dir); }
  void program(const std::string& name, const std::string& content, mode_t mode = 0755) const {
    std::ofstream(dir + "/" + name) << content;
    ::chmod((dir + "/" + name).c_str(), mode);
  }
  std::string dir;
};

TEST_F(ClientPythonTest, the_interpreter_of_a_command_is_found_as_the_shell_would) {
  program("python3.11", "");
  program("python", "", 0644);
  program("tool", "#!" + dir + "/python3.11 -u\nimport ray\n");
  program("envtool", "#!/usr/bin/env -S python3.11 -u\n");
  program("shelltool", "#!/bin/sh\npython3.11 x.py\n");
  program("binary", std::string("\x7f"
                                "ELF\0\0",
                                6));
  EXPECT_EQ(interpreter_of("python3.11", "/nowhere:" + dir), dir + "/python3.11");
  EXPECT_EQ(interpreter_of(dir + "/python3.11", ""), dir + "/python3.11");
  EXPECT_EQ(interpreter_of("python", dir), std::nullopt) << "it cannot be run";
  EXPECT_EQ(interpreter_of("tool", dir), dir + "/python3.11");
  EXPECT_EQ(interpreter_of("envtool", dir), dir + "/python3.11");
  for (const char* unknown : {"shelltool", "binary", "missing"}) EXPECT_EQ(interpreter_of(unknown, dir), std::nullopt) << unknown;
}

TEST_F(ClientPythonTest, an_interpreter_is_asked_for_both_versions) {
  program("python", "#!/bin/sh\necho warning >&2\necho 'helio-probe:{\"python\": \"3.11.7\", \"ray\": \"2.60.0\"}'\necho bye >&2\n");
  const auto has = ask_python(dir + "/python", {"PATH=/usr/bin:/bin"});
  ASSERT_TRUE(has) << has.error().text();
  EXPECT_EQ(has->ray, "2.60.0");
  EXPECT_EQ(has->python, "3.11.7");
  program("liar", "#!/bin/sh\necho I am no Python\n");
  EXPECT_EQ(ask_python(dir + "/liar", {}).error().code(), ErrorCode::precondition_failed);
  program("dead", "#!/bin/sh\nexit 3\n");
  EXPECT_THAT(ask_python(dir + "/dead", {}).error().message(), HasSubstr("exited with 3"));
}

TEST_F(ClientPythonTest, a_real_python_without_ray_says_so) {
  const auto python = interpreter_of("python3", "/usr/bin:/bin:/usr/local/bin");
  if (!python) GTEST_SKIP() << "no python3 here";
  const auto has = ask_python(*python, {"PATH=/usr/bin:/bin", "PYTHONNOUSERSITE=1"});
  ASSERT_TRUE(has) << has.error().text();
  EXPECT_THAT(has->python, HasSubstr("3."));
}

TEST(WhyNoClient, what_fits_or_is_not_known_is_let_through) {
  EXPECT_EQ(why_no_client({"2.60.0", "3.11.7"}, "python", {"2.60.0", "3.11.2"}, ""), std::nullopt) << "the patch does not matter";
  EXPECT_EQ(why_no_client({"2.60.0", ""}, "python", {"2.60.0", "3.12.1"}, ""), std::nullopt) << "not known any more";
}

TEST(WhyNoClient, what_differs_is_said_with_what_to_do) {
  const auto ray = why_no_client({"2.60.0", "3.11.7"}, "/v/bin/python", {"2.9.3", "3.11.7"}, "/images/p/bin/python");
  ASSERT_TRUE(ray);
  EXPECT_THAT(*ray, AllOf(HasSubstr("Ray 2.60.0 on Python 3.11"), HasSubstr("/v/bin/python has Ray 2.9.3 on Python 3.11.7"),
                          HasSubstr("/v/bin/python -m pip install 'ray[client]==2.60.0'"), HasSubstr("/images/p/bin/python")));
  const auto python = why_no_client({"2.60.0", "3.11.7"}, "python3", {"2.60.0", "3.12.1"}, "");
  ASSERT_TRUE(python);
  EXPECT_THAT(*python, AllOf(HasSubstr("python3.11 -m venv"), HasSubstr("ray[client]==2.60.0"), Not(HasSubstr("on this machine"))));
  const auto none = why_no_client({"2.60.0", "3.11.7"}, "python3", {"", "3.11.2"}, "");
  ASSERT_TRUE(none);
  EXPECT_THAT(*none, HasSubstr("has no Ray"));
  EXPECT_NE(why_no_client({"2.60.0", "3.11.7"}, "python3", {"2.60.0", "3.1.7"}, ""), std::nullopt) << "3.1 is not 3.11";
}

}  // namespace
}  // namespace helio::cli
