#include "cli/package.h"

#include "base/hash.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

class PackageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/helio-pack-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }
  Result<Package> pack(PackOptions options = {}) { return pack_folder(root_.string(), options); }

  fs::path root_;
};

TEST_F(PackageTest, the_same_content_gives_the_same_digest_whatever_its_times) {
  file("b.py", "print(1)");
  file("a/c.py", "print(2)");
  const auto first = pack();
  ASSERT_TRUE(first) << first.error().text();
  fs::last_write_time(root_ / "b.py", fs::file_time_type::clock::now() - std::chrono::hours(5));
  const auto second = pack();
  ASSERT_TRUE(second);
  EXPECT_EQ(first->sha256, second->sha256);
  EXPECT_EQ(first->files, 2);
  const auto content = read_file(first->zip.path());
  ASSERT_TRUE(content);
  EXPECT_EQ(sha256_hex(*content), first->sha256);
  file("b.py", "print(3)");
  const auto third = pack();
  ASSERT_TRUE(third);
  EXPECT_NE(first->sha256, third->sha256);
}

TEST_F(PackageTest, python_reads_back_what_was_packed) {
  file("run.sh", "#!/bin/sh\necho hello\n");
  fs::permissions(root_ / "run.sh", fs::perms(0755));
  file("d/ü.txt", std::string(200'000, 'x'));
  file("empty", "");
  const auto package = pack();
  ASSERT_TRUE(package) << package.error().text();
  const std::string script =
      "import sys, zipfile\n"
      "z = zipfile.ZipFile(sys.argv[1])\n"
      "assert z.testzip() is None\n"
      "assert z.namelist() == ['d/ü.txt', 'empty', 'run.sh'], z.namelist()\n"
      "assert z.read('d/ü.txt') == b'x' * 200000 and z.read('empty') == b''\n"
      "assert [i.external_attr >> 16 & 0o777 for i in z.infolist()] == [0o644, 0o644, 0o755]\n";
  file("check.py", script);
  const std::string command = "python3 '" + (root_ / "check.py").string() + "' '" + package->zip.path() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): one thread
}

TEST_F(PackageTest, ignored_files_stay_at_home) {
  file("keep.py", "1");
  file(".gitignore", "*.bin\n");
  file("big.bin", std::string(100, 'x'));
  file(".git/config", "x");
  file("__pycache__/keep.pyc", "x");
  file("skip.txt", "x");
  const auto package = pack({.excludes = {"skip.*"}});
  ASSERT_TRUE(package);
  EXPECT_EQ(package->files, 2);  // keep.py and .gitignore
}

TEST_F(PackageTest, a_link_out_of_the_folder_is_refused_by_name) {
  file("a.py", "1");
  fs::create_symlink("/etc/hostname", root_ / "host");
  const auto package = pack();
  ASSERT_FALSE(package);
  EXPECT_EQ(package.error().code(), ErrorCode::invalid_argument);
  EXPECT_NE(package.error().message().find("host"), std::string::npos);
  fs::remove(root_ / "host");
  fs::create_symlink("a.py", root_ / "b.py");
  const auto inside = pack();
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->files, 2);
}

TEST_F(PackageTest, a_link_to_its_own_parent_ends) {
  file("d/a.py", "1");
  fs::create_directory_symlink("..", root_ / "d/up");
  const auto package = pack();
  ASSERT_FALSE(package);
  EXPECT_EQ(package.error().code(), ErrorCode::invalid_argument);
}

TEST_F(PackageTest, over_the_limit_the_largest_files_are_named) {
  std::string noise(300'000, 'x');
  unsigned state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  file("data/huge.dat", noise);
  file("small.py", "1");
  const auto package = pack({.limit = 100_KiB});
  ASSERT_FALSE(package);
  EXPECT_EQ(package.error().code(), ErrorCode::resource_exhausted);
  EXPECT_NE(package.error().message().find("data/huge.dat"), std::string::npos);
}

TEST_F(PackageTest, an_absent_or_empty_folder_is_an_error) {
  EXPECT_FALSE(pack());
  const auto absent = pack_folder((root_ / "nothing").string(), {});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), ErrorCode::not_found);
}

TEST_F(PackageTest, a_file_that_is_no_zip_is_refused) {
  file("x.zip", "hello");
  const auto zip = inspect_zip((root_ / "x.zip").string(), 1_MiB);
  ASSERT_FALSE(zip);
  EXPECT_EQ(zip.error().code(), ErrorCode::invalid_argument);
}

TEST_F(PackageTest, rules_that_cannot_be_read_are_an_error) {
  file("a.py", "1");
  ASSERT_EQ(::mkfifo((root_ / ".gitignore").c_str(), 0600), 0);
  const auto package = pack();
  ASSERT_FALSE(package);
  EXPECT_EQ(package.error().code(), ErrorCode::invalid_argument);
  EXPECT_NE(package.error().message().find(".gitignore"), std::string::npos);
}

}  // namespace
}  // namespace helio::cli
