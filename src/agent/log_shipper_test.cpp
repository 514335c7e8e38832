#include "agent/log_shipper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace helio::agent {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

/// The daemon's side of streams: appends what lies beyond what it holds, refuses a gap, acknowledges when told.
class Daemon {
 public:
  struct Stream {
    std::string name;
    std::string kind;
    std::string bytes;
    bool ended = false;
  };
  bool announce(const model::StreamInfo& info) {
    names[info.id] = info.name;
    Stream& stream = streams[info.name];
    stream.name = info.name;
    stream.kind = info.kind;
    stream.ended = stream.ended || info.ended;
    if (!info.ended) fresh.push_back(info.id);
    return true;
  }
  bool piece(std::int32_t id, std::int64_t offset, std::string_view bytes) {
    EXPECT_LE(bytes.size(), kPieceBytes);
    ++pieces;
    if (!open) return false;
    Stream& stream = streams.at(names.at(id));
    const auto have = static_cast<std::int64_t>(stream.bytes.size());
    EXPECT_LE(offset, have) << "a gap in " << stream.name;
    if (offset + static_cast<std::int64_t>(bytes.size()) > have) stream.bytes += bytes.substr(static_cast<std::size_t>(have - offset));
    order.push_back(stream.name);
    return true;
  }

  std::map<std::int32_t, std::string> names;
  std::map<std::string, Stream> streams;
  std::vector<std::int32_t> fresh;
  std::vector<std::string> order;
  int pieces = 0;
  bool open = true;
};

class LogShipperTest : public testing::Test {
 protected:
  LogShipperTest() {
    std::string root = testing::TempDir() + "shipperXXXXXX";
    EXPECT_NE(::mkdtemp(root.data()), nullptr);
    root_ = root;
    logs_ = root_ + "/session_2026-01-01_00-00-00_000001_1/logs";
    fs::create_directories(logs_ + "/jobs");
    options.temp_dir = root_;
    options.submission_id = "a-1";
    make();
  }
  ~LogShipperTest() override { fs::remove_all(root_); }

  void make() {
    shipper = std::make_unique<LogShipper>(options,
                                           ShipperOut{.announce = [this](const model::StreamInfo& info) { return daemon.announce(info); },
                                                      .piece = [this](std::int32_t id, std::int64_t offset,
                                                                      std::string_view bytes) { return daemon.piece(id, offset, bytes); }});
  }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(logs_ + "/" + name, std::ios::app | std::ios::binary) << text;
  }
  /// The daemon answers announcements with what it holds.
  void answer() {
    for (const auto id : std::exchange(daemon.fresh, {})) {
      shipper->resume(id, static_cast<std::int64_t>(daemon.streams.at(daemon.names.at(id)).bytes.size()));
    }
    shipper->pump();
  }
  void acknowledge() {
    for (const auto& [id, name] : daemon.names) {
      const auto& stream = daemon.streams.at(name);
      shipper->acknowledge(id, static_cast<std::int64_t>(stream.bytes.size()), stream.ended);
    }
    shipper->pump();
  }
  /// Looks, sends and acknowledges until nothing moves.
  void settle() {
    for (int before = -1; before != daemon.pieces;) {
      before = daemon.pieces;
      shipper->scan();
      shipper->pump();
      answer();
      acknowledge();
    }
  }

  std::string root_;
  std::string logs_;
  ShipperOptions options;
  Daemon daemon;
  std::unique_ptr<LogShipper> shipper;
};

TEST_F(LogShipperTest, EveryByteOfEveryLogArrives) {
  append("job-driver-a-1.log", "one\ntwo\n");
  append("worker-ab-01-7.out", std::string(700'000, 'w'));
  append("raylet.out", "r\n");
  append("worker-ab-01-7.err", "");
  append("debug_state.txt", "not a log");
  append("jobs/supervisor-a-1.log", "s\n");
  shipper->connected();
  settle();
  EXPECT_EQ(daemon.streams["driver"].bytes, "one\ntwo\n");
  EXPECT_EQ(daemon.streams["driver"].kind, "driver");
  EXPECT_EQ(daemon.streams["worker-ab-01-7.out"].bytes.size(), 700'000U);
  EXPECT_EQ(daemon.streams["worker-ab-01-7.out"].kind, "worker");
  EXPECT_EQ(daemon.streams["supervisor-a-1.log"].bytes, "s\n");
  EXPECT_EQ(daemon.streams.size(), 4U) << "empty files and other files are no streams";
  append("job-driver-a-1.log", "three\n");
  settle();
  EXPECT_EQ(daemon.streams["driver"].bytes, "one\ntwo\nthree\n");
  EXPECT_FALSE(shipper->shipped()) << "more may come";
  shipper->finish();
  settle();
  EXPECT_TRUE(shipper->shipped());
  EXPECT_TRUE(daemon.streams["driver"].ended);
}

TEST_F(LogShipperTest, NothingIsSentBeforeTheDaemonSaysWhereToGoOn) {
  append("job-driver-a-1.log", "one\n");
  shipper->scan();
  shipper->connected();
  EXPECT_EQ(daemon.pieces, 0);
  answer();
  EXPECT_EQ(daemon.pieces, 1);
}

TEST_F(LogShipperTest, WindowHoldsBackAndTheDriverGoesFirst) {
  append("worker-a.out", std::string(6 << 20, 'w'));
  append("job-driver-a-1.log", std::string(3 << 20, 'd'));
  shipper->scan();
  shipper->connected();
  answer();
  EXPECT_EQ(daemon.order.front(), "driver");
  EXPECT_EQ(daemon.streams["driver"].bytes.size(), 3U << 20U);
  std::size_t sent = 0;
  for (const auto& [name, stream] : daemon.streams) sent += stream.bytes.size();
  EXPECT_LE(sent, static_cast<std::size_t>(kWindowBytes));
  append("job-driver-a-1.log", std::string(512 << 10, 'e'));
  shipper->scan();
  shipper->pump();
  EXPECT_EQ(daemon.streams["driver"].bytes.size(), (3U << 20U) + (512U << 10U)) << "a part of the window is the driver's";
  settle();
  EXPECT_EQ(daemon.streams["worker-a.out"].bytes.size(), 6U << 20U);
}

TEST_F(LogShipperTest, GoesOnAfterALostConnection) {
  append("job-driver-a-1.log", "one\n");
  shipper->connected();
  shipper->scan();
  shipper->pump();
  answer();
  // Sent, and never acknowledged; half of it arrived.
  daemon.streams["driver"].bytes = "on";
  shipper->disconnected();
  append("job-driver-a-1.log", "two\n");
  shipper->scan();
  shipper->pump();
  shipper->connected();
  settle();
  EXPECT_EQ(daemon.streams["driver"].bytes, "one\ntwo\n");
}

TEST_F(LogShipperTest, FullQueueIsTriedAgain) {
  append("job-driver-a-1.log", "one\n");
  shipper->connected();
  shipper->scan();
  daemon.open = false;
  shipper->pump();
  answer();
  EXPECT_EQ(daemon.streams["driver"].bytes, "");
  daemon.open = true;
  settle();
  EXPECT_EQ(daemon.streams["driver"].bytes, "one\n");
}

TEST_F(LogShipperTest, RotatedFilesAreOneStream) {
  shipper->connected();
  append("raylet.out", "first\n");
  settle();
  append("raylet.out", "late\n");  // after the last look
  fs::rename(logs_ + "/raylet.out", logs_ + "/raylet.out.1");
  append("raylet.out", "second\n");
  settle();
  EXPECT_EQ(daemon.streams["raylet.out"].bytes, "first\nlate\nsecond\n");
  fs::rename(logs_ + "/raylet.out.1", logs_ + "/raylet.out.2");
  fs::rename(logs_ + "/raylet.out", logs_ + "/raylet.out.1");
  append("raylet.out", "third\n");
  settle();
  EXPECT_EQ(daemon.streams["raylet.out"].bytes, "first\nlate\nsecond\nthird\n");
}

TEST_F(LogShipperTest, LateComerReadsRotatedFilesOldestFirst) {
  append("raylet.out.2", "a\n");
  append("raylet.out.1", "b\n");
  append("raylet.out", "c\n");
  shipper->connected();
  settle();
  EXPECT_EQ(daemon.streams["raylet.out"].bytes, "a\nb\nc\n");
}

TEST_F(LogShipperTest, FileThatVanishedIsMarkedByteForByte) {
  append("worker-a.out", "12345678\n");
  shipper->scan();
  fs::remove(logs_ + "/worker-a.out");
  shipper->connected();
  settle();
  EXPECT_EQ(daemon.streams["worker-a.out"].bytes, "????????\n");
  shipper->finish();
  settle();
  EXPECT_TRUE(shipper->shipped());
}

TEST_F(LogShipperTest, LimitCutsVisibly) {
  options.log_limit = 4_MiB;
  make();
  append("job-driver-a-1.log", std::string(3 << 20, 'd'));
  append("worker-a.out", std::string(500'000, 'w'));
  shipper->connected();
  settle();
  const std::string& driver = daemon.streams["driver"].bytes;
  EXPECT_EQ(driver.find('['), (2U << 20U) + 1) << "half of the limit is the driver's";
  EXPECT_THAT(driver.substr(2U << 20U), HasSubstr("cut here, after 2MiB"));
  EXPECT_THAT(driver, EndsWith("]\n"));
  EXPECT_EQ(daemon.streams["worker-a.out"].bytes.size(), 500'000U);
  append("job-driver-a-1.log", "more\n");
  shipper->finish();
  settle();
  EXPECT_THAT(daemon.streams["driver"].bytes, EndsWith("]\n"));
  EXPECT_TRUE(shipper->shipped());
}

TEST_F(LogShipperTest, FirstLineIsTheEntrypointsOwn) {
  append("job-driver-a-1.log", "2026-01-01 INFO job_manager.py:1 -- Runtime env is setting up.\n");
  shipper->scan();
  append("job-driver-a-1.log", "Running entrypoint for job a-1: python x.py\n");
  shipper->scan();
  append("job-driver-a-1.log", "hel");
  shipper->scan();
  EXPECT_FALSE(shipper->first_line()) << "not whole yet";
  append("job-driver-a-1.log", "lo\n");
  shipper->scan();
  EXPECT_TRUE(shipper->first_line()) << "without any connection";
}

TEST_F(LogShipperTest, FilesOutsideOfTheSessionToo) {
  options.locals = {{root_ + "/agent.jsonl", "agent", "agent"}};
  make();
  std::ofstream(root_ + "/agent.jsonl") << "{}\n";
  shipper->connected();
  settle();
  EXPECT_EQ(daemon.streams["agent"].bytes, "{}\n");
  EXPECT_EQ(daemon.streams["agent"].kind, "agent");
}

}  // namespace
}  // namespace helio::agent
