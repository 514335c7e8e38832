#include "model/ray_version.h"

#include <gtest/gtest.h>

namespace helio::model {
namespace {

TEST(RayVersion, tokens_are_known_from_2_52) {
  for (const char* yes : {"2.60.0", "2.52.0", "2.52.1rc1", "3.0"}) EXPECT_TRUE(ray_has_tokens(yes)) << yes;
  for (const char* no : {"2.51.9", "2.9.3", "1.99.0", "nightly", "", "2", "2."}) EXPECT_FALSE(ray_has_tokens(no)) << no;
}

TEST(RayVersion, minors_are_numbers) { EXPECT_LT(parse_ray_version("2.9.3"), parse_ray_version("2.30.0")); }

}  // namespace
}  // namespace helio::model
