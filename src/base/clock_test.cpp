#include "base/clock.h"

#include <gtest/gtest.h>

namespace helio {
namespace {

TEST(Clock, time_round_trips_to_the_microsecond) {
  for (const std::int64_t us : {0LL, 1LL, 1'700'000'000'123'456LL, 951'782'399'999'999LL, -1LL, 4'102'444'800'000'000LL}) {
    const std::string text = format_time({us});
    const auto back = parse_time(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(back->us, us) << text;
  }
  EXPECT_EQ(format_time({1'700'000'000'123'456}), "2023-11-14T22:13:20.123456Z");
}

TEST(Clock, offsets_and_fractions_are_understood) {
  EXPECT_EQ(parse_time("2023-11-14T23:13:20+01:00"), parse_time("2023-11-14T22:13:20Z"));
  EXPECT_EQ(parse_time("2023-11-14T17:43:20-04:30"), parse_time("2023-11-14T22:13:20Z"));
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.5Z")->us, 1'700'000'000'500'000);
  EXPECT_EQ(parse_time("2023-11-14T22:13:20.123456789Z")->us, 1'700'000'000'123'456);
}

TEST(Clock, what_is_no_time_is_refused) {
  for (const char* text : {"", "now", "2023-11-14", "2023-02-30T00:00:00Z", "2023-11-14T24:00:00Z", "2023-11-14T22:13:20",
                           "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20+1", "2023-11-14T22:-1:20Z", "2023-11-14T22:13:20Zx"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(Clock, durations) {
  EXPECT_EQ(parse_duration("90s"), Duration(90s));
  EXPECT_EQ(parse_duration("1h30m"), Duration(90min));
  EXPECT_EQ(parse_duration("250ms"), Duration(250ms));
  EXPECT_EQ(parse_duration("1.5"), Duration(1500ms));
  EXPECT_EQ(parse_duration("0"), Duration(0));
  EXPECT_EQ(parse_duration("2d"), Duration(48h));
  for (const char* text : {"", "-1s", "s", "1x", "1h-2m", "inf", "nan", "nans", "1h nan", "1e30", "10 m"})
    EXPECT_FALSE(parse_duration(text)) << text;
  EXPECT_EQ(format_duration(350ms), "350ms");
  EXPECT_EQ(format_duration(1200ms), "1.2s");
  EXPECT_EQ(format_duration(190s), "3m10s");
  EXPECT_EQ(format_duration(125min), "2h5m");
}

TEST(Clock, a_wall_clock_jump_does_not_move_deadlines) {
  ManualClock clock;
  const MonoTime before = clock.mono();
  clock.jump_wall(-3h);
  EXPECT_EQ(clock.mono(), before);
  clock.advance(5s);
  EXPECT_EQ(clock.mono() - before, Duration(5s));
}

}  // namespace
}  // namespace helio
