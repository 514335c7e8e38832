#include "base/units.h"

#include <gtest/gtest.h>

namespace helio {
namespace {

TEST(Units, sizes_are_read_as_people_write_them) {
  EXPECT_EQ(parse_bytes("0")->n, 0);
  EXPECT_EQ(parse_bytes("1048576")->n, 1048576);
  EXPECT_EQ(parse_bytes("512MiB")->n, 512LL << 20);
  EXPECT_EQ(parse_bytes("4GiB")->n, 4LL << 30);
  EXPECT_EQ(parse_bytes("4Gi")->n, 4LL << 30);
  EXPECT_EQ(parse_bytes("4G")->n, 4'000'000'000);
  EXPECT_EQ(parse_bytes("1.5GB")->n, 1'500'000'000);
  EXPECT_EQ(parse_bytes("0.5KiB")->n, 512);
}

TEST(Units, malformed_sizes_are_refused) {
  for (const char* text : {"", "GiB", "-1", "-1GiB", "4 GiB", "4gib", "4GiBs", "nan", "inf", "1e300", "9999999TiB", "0x10"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(Units, formats_are_short_and_read_back) {
  EXPECT_EQ(format_bytes(4_GiB), "4GiB");
  EXPECT_EQ(format_bytes(Bytes{3LL << 29}), "1.5GiB");
  EXPECT_EQ(format_bytes(300_MiB), "300MiB");
  EXPECT_EQ(format_bytes(Bytes{0}), "0B");
  EXPECT_EQ(format_bytes(Bytes{1023}), "1023B");
  EXPECT_EQ(parse_bytes(format_bytes(Bytes{3LL << 29}))->n, 3LL << 29);
  EXPECT_EQ(format_cpu(MilliCpu{2000}), "2");
  EXPECT_EQ(format_cpu(MilliCpu{500}), "0.5");
}

}  // namespace
}  // namespace helio
