#include "cli/hints.h"

#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace helio::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Hints, a_forgotten_double_dash_is_put_where_it_belongs) {
  EXPECT_EQ(unexpected_words("run", {"--workers", "2", "python", "main.py"}, {"python", "main.py"}),
            "put -- before the command: helio run --workers 2 -- python main.py");
  EXPECT_EQ(unexpected_words("run", {"--workers", "2", "python", "a b.py", "--epochs", "3"}, {"python", "a b.py", "--epochs", "3"}),
            "put -- before the command: helio run --workers 2 -- python 'a b.py' --epochs 3");
  EXPECT_EQ(unexpected_words("submit", {"--name", "x", "sleep", "5"}, {"5"}),
            "put -- before the command: helio submit --name x -- sleep 5");
  EXPECT_EQ(unexpected_words("exec", {"slow", "nvidia-smi"}, {"nvidia-smi"}), "put -- before the command: helio exec slow -- nvidia-smi");
  EXPECT_EQ(unexpected_words("run", {"--wrokers", "2"}, {"--wrokers", "2"}), "no option '--wrokers'; `helio run --help` lists them");
  EXPECT_EQ(unexpected_words("ps", {"a", "b"}, {"a", "b"}), "not expected: a b; `helio ps --help` tells more");
}

TEST(Hints, files_of_the_current_folder_are_noticed) {
  std::string folder = "/tmp/helio-hints-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  for (const char* name : {"main.py", "job.yaml", "python"}) std::ofstream(name) << "x";
  EXPECT_EQ(file_left_behind({"python", "main.py"}), "main.py");
  EXPECT_EQ(file_left_behind({"./main.py"}), "./main.py");
  EXPECT_EQ(file_left_behind({"python", "/etc/hostname", "--x", "other.py", "-"}), std::nullopt);
  EXPECT_EQ(unexpected_words("run", {"job.yaml"}, {"job.yaml"}),
            "a job file goes with -f: helio run -f job.yaml (or: helio submit job.yaml)");
  EXPECT_EQ(no_job_file("job.yaml"), std::nullopt);
  EXPECT_EQ(no_job_file(""), std::nullopt);
  EXPECT_NE(no_job_file("sleep").value().find("helio submit -- sleep"), std::string::npos);
  EXPECT_NE(no_job_file("main.py").value().find("-- python main.py"), std::string::npos);
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace helio::cli
