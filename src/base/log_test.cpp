#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

namespace helio::log {
namespace {

namespace fs = std::filesystem;

/// stderr goes to a file, as that of a daemon does, for the life of the object.
class Redirected {
 public:
  explicit Redirected(const std::string& path) : kept_(::dup(STDERR_FILENO)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(fd, STDERR_FILENO);
    ::close(fd);
  }
  ~Redirected() {
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
    rotate("", 0);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int kept_;
};

TEST(Log, a_file_that_is_full_is_kept_once_and_a_new_one_begun) {
  char name[] = "/tmp/helio-log-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string path = std::string(name) + "/daemon.log";
  {
    const Redirected redirected(path);
    rotate(path, 2000);
    for (int i = 0; i < 200; ++i) warn("line {} of many that say the same thing", i);
  }
  EXPECT_LE(fs::file_size(path), 2200U);
  EXPECT_LE(fs::file_size(path + ".1"), 2200U);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("line 199 of many"), std::string::npos) << text;
  EXPECT_EQ(std::distance(fs::directory_iterator(name), {}), 2);
  fs::remove_all(name);
}

TEST(Log, a_file_of_somebody_else_is_left_alone) {
  char name[] = "/tmp/helio-log-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string path = std::string(name) + "/terminal";
  {
    const Redirected redirected(path);
    rotate(std::string(name) + "/daemon.log", 100);
    for (int i = 0; i < 20; ++i) warn("line {}", i);
  }
  EXPECT_GT(fs::file_size(path), 400U);
  EXPECT_EQ(std::distance(fs::directory_iterator(name), {}), 1);
  fs::remove_all(name);
}

}  // namespace
}  // namespace helio::log
