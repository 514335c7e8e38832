#include "provider/local/places.h"

#include "proc/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <set>

namespace helio::provider::local {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class PlacesTest : public testing::Test {
 protected:
  PlacesTest() {
    std::string pattern = "/tmp/hp-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    for (const char* name : {"/a", "/b"}) EXPECT_TRUE(proc::make_folders(folder_ + name));
  }
  ~PlacesTest() override { EXPECT_TRUE(proc::wipe(folder_)); }
  [[nodiscard]] Places places(const std::string& name) const { return {model::Home{folder_ + name}, folder_ + "/s"}; }
  std::string folder_;
};

TEST_F(PlacesTest, ClustersAndHomesDoNotShareAnything) {
  const Places a = places("/a");
  const Places b = places("/b");
  EXPECT_NE(a.home_id(), b.home_id());
  EXPECT_NE(a.session_folder(), b.session_folder());
  EXPECT_EQ(a.temp_dir(3, 1), places("/a").temp_dir(3, 1)) << "a restarted daemon finds them again";
  std::set<std::string> addresses;
  for (int slot = 0; slot < 2000; ++slot) {
    for (const int index : {0, 1, 251}) addresses.insert(a.address(slot, index).value());
  }
  EXPECT_EQ(addresses.size(), 6000U);
  for (const std::string& address : addresses) {
    ASSERT_THAT(address, StartsWith("127."));
    ASSERT_THAT(address, Not(StartsWith("127.0.")));
  }
  const auto too_many = a.address(1, 252);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().code(), ErrorCode::resource_exhausted);
}

TEST_F(PlacesTest, TempDirsAreShortByDefault) {
  const Places usual(model::Home{"/home/somebody/.heliostat"}, "");
  EXPECT_LE(usual.temp_dir(99'999, 251).size(), kMaxTempDir);
}

TEST_F(PlacesTest, SessionFolderIsClosedToOthersAndNotTakenFromThem) {
  const Places a = places("/a");
  ASSERT_TRUE(a.prepare());
  struct stat info{};
  ASSERT_EQ(stat(a.session_folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  ASSERT_EQ(chmod((folder_ + "/s").c_str(), 0777), 0);
  EXPECT_FALSE(a.prepare()) << "others could lay something there";
  ASSERT_EQ(chmod((folder_ + "/s").c_str(), 0755), 0);
  ASSERT_TRUE(a.prepare());
  ASSERT_EQ(stat((folder_ + "/s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0755U) << "a named folder keeps its mode";
  ASSERT_TRUE(proc::wipe(folder_ + "/s"));
  ASSERT_EQ(symlink("/tmp", (folder_ + "/s").c_str()), 0);
  EXPECT_FALSE(a.prepare()) << "a link that somebody laid there";
  if (geteuid() != 0) return;
  ASSERT_TRUE(proc::wipe(folder_ + "/s"));
  ASSERT_TRUE(proc::make_folders(folder_ + "/s"));
  ASSERT_EQ(chown((folder_ + "/s").c_str(), 65534, 65534), 0);
  const auto foreign = a.prepare();
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code(), ErrorCode::precondition_failed);
}

TEST_F(PlacesTest, AFolderOfAHomeWithTheSameHashIsLeftAlone) {
  const Places a = places("/a");
  ASSERT_TRUE(a.prepare());
  ASSERT_TRUE(proc::write_file(a.session_folder() + "/home", "/some/other/home"));
  EXPECT_NE(places("/a").session_folder(), a.session_folder());
}

TEST(Ports, BlocksStayBelowTheEphemeralRangeAndOutsideRayClients) {
  const auto always = [](std::int32_t) { return true; };
  std::set<std::int32_t> taken;
  for (;;) {
    const auto base = find_ports(32768, 12345, taken, always);
    if (!base) {
      EXPECT_EQ(base.error().code(), ErrorCode::resource_exhausted);
      EXPECT_THAT(base.error().message(), HasSubstr("no free ports"));
      break;
    }
    ASSERT_GE(*base, 10000);
    ASSERT_LE(*base + 99, 32767);
    ASSERT_TRUE(*base + 99 < 23000 || *base > 23999) << *base;
    ASSERT_TRUE(taken.insert(*base).second) << "handed out twice";
  }
  EXPECT_EQ(taken.size(), 217U);
  EXPECT_FALSE(find_ports(10050, 0, {}, always));
  EXPECT_FALSE(find_ports(32768, 0, {}, [](std::int32_t) { return false; }));
}

TEST(Ports, AListenerMakesItsBlockBusy) {
  const auto base = find_ports(ephemeral_ports_from(), 77, {}, ports_are_free);
  ASSERT_TRUE(base) << base.error().text();
  for (const int offset : {0, 8, 99}) {
    const proc::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(*base + offset));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(fd.get(), 1), 0);
    EXPECT_FALSE(ports_are_free(*base)) << offset;
  }
  EXPECT_TRUE(ports_are_free(*base));
}

}  // namespace
}  // namespace helio::provider::local
