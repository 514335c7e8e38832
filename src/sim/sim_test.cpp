#include "base/log.h"
#include "sim/run.h"

#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>

namespace helio::sim {
namespace {

class Sim : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "helio-sim-test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(Sim, InvariantsHoldOverSeeds) {
  int crashes = 0;
  for (std::uint64_t seed = 5000; seed < 5040; ++seed) {
    const Outcome outcome = run_world(seed, Bug::none, folder_);
    crashes += outcome.crashes;
    ASSERT_TRUE(outcome.breaches.empty()) << "seed " << seed << ": " << outcome.breaches.front();
  }
  EXPECT_GT(crashes, 0);
}

TEST_F(Sim, ASeedReplaysExactly) {
  for (std::uint64_t seed : {3U, 17U, 44U}) {
    const Outcome first = run_world(seed, Bug::none, folder_);
    const Outcome second = run_world(seed, Bug::none, folder_);
    EXPECT_EQ(first.story, second.story);
    EXPECT_EQ(first.steps, second.steps);
    EXPECT_EQ(first.writes, second.writes);
  }
}

class PlantedBug : public Sim, public testing::WithParamInterface<BugInfo> {};

/// The seeds that find the bugs with the code of now (`helio-sim --bugs`): where the search begins, so that it is short while they hold.
std::uint64_t first_seed(Bug bug) {
  switch (bug) {
    case Bug::drop_wakeup:
    case Bug::skip_salvage:
      return 8;
    case Bug::double_submit:
      return 4;
    case Bug::lose_ack:
      return 42;
    case Bug::stale_status:
      return 6;
    case Bug::early_proof:
      return 29;
    case Bug::forget_orphan:
      return 69;
    case Bug::cut_leash:
      return 176;
    default:
      return 1;
  }
}

TEST_P(PlantedBug, IsFoundWithinAFewHundredSeeds) {
  const std::uint64_t first = first_seed(GetParam().bug);
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    if (!run_world(seed, GetParam().bug, folder_).breaches.empty()) return;
  }
  FAIL() << "not found: " << GetParam().what;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(all_bugs()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace helio::sim
