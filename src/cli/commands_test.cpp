#include "cli/commands.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace helio::cli {
namespace {

class CommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/helio-cmd-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    ::setenv("HELIOSTAT_HOME", home_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    ::unsetenv("HELIOSTAT_URL");                   // NOLINT(concurrency-mt-unsafe)
    ::unsetenv("HELIOSTAT_TOKEN");                 // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  /// Exit code, and what went to stderr in err_.
  int run(const std::vector<std::string>& args) {
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
    const int code = run_program(args);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  std::string home_, out_, err_;
};

TEST_F(CommandsTest, wrong_use_is_one_line_that_says_what_is_right) {
  EXPECT_EQ(run({"frobnicate"}), 64);
  EXPECT_NE(err_.find("no command 'frobnicate'"), std::string::npos) << err_;
  EXPECT_EQ(std::ranges::count(err_, '\n'), 1);
  EXPECT_EQ(run({"ps", "--output", "xml"}), 64);
  EXPECT_EQ(run({"wait"}), 64);
  EXPECT_EQ(run({"ps", "--no-such-flag"}), 64);
  EXPECT_NE(err_.find("--no-such-flag"), std::string::npos) << err_;
  EXPECT_EQ(run({}), 64);
  EXPECT_EQ(run({"-o", "json", "run", "--workers", "2", "python", "main.py", "--epochs", "3"}), 64);
  EXPECT_NE(err_.find("put -- before the command: helio run --workers 2 -- python main.py --epochs 3\n"), std::string::npos) << err_;
  EXPECT_EQ(run({"submit", "sleep", "5"}), 64);
  EXPECT_NE(err_.find("helio submit -- sleep 5\n"), std::string::npos) << err_;
  EXPECT_EQ(run({"connect", "--port", "10001", "held", "python", "x.py"}), 64);
  EXPECT_NE(err_.find("helio connect --port 10001 held -- python x.py\n"), std::string::npos) << err_;
  EXPECT_EQ(run({"connect", "--port", "70000", "held"}), 64);
}

TEST_F(CommandsTest, without_a_daemon_the_way_to_start_one_is_told) {
  EXPECT_EQ(run({"ps"}), 72);
  EXPECT_NE(err_.find("helio up"), std::string::npos) << err_;
  EXPECT_EQ(run({"--url", "http://127.0.0.1:1", "ps"}), 65);  // no token either
  ::setenv("HELIOSTAT_TOKEN", "t", 1);                        // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(run({"--url", "http://127.0.0.1:1", "ps"}), 72);
  ::unsetenv("HELIOSTAT_TOKEN");  // NOLINT(concurrency-mt-unsafe)
}

TEST_F(CommandsTest, help_and_version_are_no_errors) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_NE(out_.find("explain"), std::string::npos);
  EXPECT_EQ(out_.find("__complete"), std::string::npos);
  EXPECT_EQ(run({"run", "--help"}), 0);
  EXPECT_NE(out_.find("[-- COMMAND...]"), std::string::npos) << out_;
  EXPECT_EQ(run({"ps", "--help"}), 0);
  EXPECT_EQ(out_.find("COMMAND..."), std::string::npos) << out_;
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(run({"down"}), 0);
}

TEST_F(CommandsTest, completion_walks_the_commands_that_are_parsed) {
  EXPECT_EQ(run({"__complete", "--", "ex"}), 0);
  EXPECT_EQ(out_, "explain\nexec\n");
  EXPECT_EQ(run({"__complete", "--", "image", "a"}), 0);
  EXPECT_EQ(out_, "add\n");
  EXPECT_EQ(run({"__complete", "--", "run", "--work"}), 0);
  EXPECT_EQ(out_, "--workers\n--working-dir\n");
  EXPECT_EQ(run({"__complete", "--", "show", "la"}), 0);
  EXPECT_EQ(out_, "last\n");
  EXPECT_EQ(run({"completion", "tcsh"}), 64);
  EXPECT_EQ(run({"completion", "zsh"}), 0);
}

}  // namespace
}  // namespace helio::cli
