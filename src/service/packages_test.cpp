#include "service/packages.h"

#include "base/hash.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace helio::service {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string name;
  std::string content;
  std::string link;  ///< target of a symbolic link
};

class PackagesTest : public testing::Test {
 protected:
  PackagesTest() {
    std::string folder = fs::temp_directory_path().string() + "/helio_packages.XXXXXX";
    home.root = ::mkdtemp(folder.data());
  }
  ~PackagesTest() override { fs::remove_all(home.root); }

  std::string zip(const std::vector<Entry>& entries) {
    const std::string path = home.root + "/spooled";
    archive* out = ::archive_write_new();
    ::archive_write_set_format_zip(out);
    EXPECT_EQ(::archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
    for (const Entry& e : entries) {
      archive_entry* entry = ::archive_entry_new();
      ::archive_entry_set_pathname(entry, e.name.c_str());
      ::archive_entry_set_perm(entry, 0644);
      if (e.link.empty()) {
        ::archive_entry_set_filetype(entry, AE_IFREG);
        ::archive_entry_set_size(entry, static_cast<la_int64_t>(e.content.size()));
      } else {
        ::archive_entry_set_filetype(entry, AE_IFLNK);
        ::archive_entry_set_symlink(entry, e.link.c_str());
      }
      EXPECT_EQ(::archive_write_header(out, entry), ARCHIVE_OK);
      if (e.link.empty()) ::archive_write_data(out, e.content.data(), e.content.size());
      ::archive_entry_free(entry);
    }
    ::archive_write_free(out);
    return path;
  }
  std::string plain(const std::string& content) {
    const std::string path = home.root + "/spooled";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::string digest_of(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return sha256_hex(out.str());
  }
  void expect_refused(const std::string& file, ErrorCode code, const std::string& says) {
    const std::string digest = digest_of(file);
    const auto put = packages.put(digest, file);
    ASSERT_FALSE(put) << says;
    EXPECT_EQ(to_string(put.error().code()), to_string(code)) << put.error().text();
    EXPECT_EQ(put.error().path(), "$");
    EXPECT_NE(put.error().message().find(says), std::string::npos) << put.error().text();
    EXPECT_FALSE(fs::exists(file)) << "the spooled file stays behind";
    EXPECT_FALSE(packages.exists(digest));
  }

  model::Home home;
  model::Settings settings;
  Packages packages{home, settings};
};

TEST_F(PackagesTest, a_good_zip_is_kept_under_its_digest) {
  const std::string file =
      zip({{"main.py", "print(1)", ""}, {"pkg/a.py", "x", ""}, {"pkg/link.py", "", "../main.py"}, {"..data/..x", "y", ""}});
  const std::string digest = digest_of(file);
  EXPECT_FALSE(packages.exists(digest));
  const auto put = packages.put(digest, file);
  ASSERT_TRUE(put) << put.error().text();
  EXPECT_TRUE(packages.exists(digest));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(fs::status(home.package(digest)).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const std::string again = zip({{"main.py", "print(1)", ""}});
  EXPECT_TRUE(packages.put(digest_of(again), again)) << "putting twice is harmless";
}

TEST_F(PackagesTest, an_empty_zip_is_a_zip) {
  const std::string file = zip({});
  const auto put = packages.put(digest_of(file), file);
  EXPECT_TRUE(put) << put.error().text();
}

TEST_F(PackagesTest, names_are_utf8) {
  // Two of the same length: the one stands for the other in the bytes of the zip, whose writer refuses some of them.
  const auto named = [&](const std::string& name, bool flagged) {
    const std::string path = zip({{std::string(name.size(), '#'), "print(1)", ""}});
    std::ostringstream read;
    read << std::ifstream(path, std::ios::binary).rdbuf();
    std::string bytes = read.str();
    const std::string stands(name.size(), '#');
    for (auto at = bytes.find(stands); at != std::string::npos; at = bytes.find(stands, at + 1)) {
      bytes.replace(at, stands.size(), name);
      // Bit 11 of the flags, in the header of the entry and in that of the directory: the name is UTF-8.
      const bool local = bytes.compare(at - 30, 4, std::string("PK\3\4", 4)) == 0;
      if (flagged) bytes[at - (local ? 23 : 37)] = static_cast<char>(bytes[at - (local ? 23 : 37)] | 8);
    }
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  for (const bool flagged : {true, false}) {
    const std::string file = named("caf\xc3\xa9/\xe6\x97\xa5\xe6\x9c\xac.py", flagged);
    const auto put = packages.put(digest_of(file), file);
    EXPECT_TRUE(put) << flagged << ": " << put.error().text();
  }
  expect_refused(named("a\xff\xfe.py", false), ErrorCode::invalid_argument, "'a\\xff\\xfe.py'");
  expect_refused(named("a\xff\xfe.py", true), ErrorCode::invalid_argument, "not UTF-8");
}

TEST_F(PackagesTest, what_leads_out_is_refused) {
  expect_refused(zip({{"/etc/passwd", "x", ""}}), ErrorCode::invalid_argument, "absolute");
  expect_refused(zip({{"a/../../b", "x", ""}}), ErrorCode::invalid_argument, "'..'");
  expect_refused(zip({{"../b", "x", ""}}), ErrorCode::invalid_argument, "'..'");
  expect_refused(zip({{"l", "", "/etc/passwd"}}), ErrorCode::invalid_argument, "link out of");
  expect_refused(zip({{"l", "", "../x"}}), ErrorCode::invalid_argument, "link out of");
  expect_refused(zip({{"a/l", "", "../../x"}}), ErrorCode::invalid_argument, "link out of");
  expect_refused(zip({{"dot", "", "."}, {"l", "", "dot/.."}}), ErrorCode::invalid_argument, "link out of");
  expect_refused(zip({{"l", "", "sub"}, {"l/x", "y", ""}}), ErrorCode::invalid_argument, "below a link");
}

TEST_F(PackagesTest, what_is_no_zip_is_refused) {
  expect_refused(plain("this is not a zip"), ErrorCode::invalid_argument, "zip");
  expect_refused(plain(""), ErrorCode::invalid_argument, "zip");
  const std::string whole = zip({{"main.py", std::string(5000, 'x'), ""}});
  fs::resize_file(whole, fs::file_size(whole) - 30);
  expect_refused(whole, ErrorCode::invalid_argument, "zip");
}

TEST_F(PackagesTest, size_and_digest_are_checked) {
  settings.server.package_limit = Bytes{100};
  expect_refused(plain(std::string(101, 'x')), ErrorCode::resource_exhausted, "package_limit");
  settings.server.package_limit = 1_MiB;
  const std::string file = zip({{"a", "b", ""}});
  const auto put = packages.put(std::string(64, '0'), file);
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().message().find("damaged"), std::string::npos);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(packages.put("../../x", zip({{"a", "b", ""}})));
  EXPECT_FALSE(packages.exists("../store"));
}

TEST_F(PackagesTest, a_bomb_is_refused) {
  settings.server.package_limit = Bytes{64 * 1024};
  expect_refused(zip({{"zeros", std::string(10'000'000, '\0'), ""}}), ErrorCode::invalid_argument, "unpacks to more");
}

}  // namespace
}  // namespace helio::service
