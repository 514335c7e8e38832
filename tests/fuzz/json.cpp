// Bodies: JSON text into values and job specs, and back.

#include "base/json/json.h"
#include "check.h"
#include "model/job.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using helio::json::Value;

/// Numbers that only fit a double are read with an error in the last place (Boost.JSON before 1.82); everything else is exact.
bool same(const Value& a, const Value& b) {
  if (a.is_double() && b.is_double()) {
    const double x = a.get_double();
    const double y = b.get_double();
    return x == y || std::abs(x - y) <= std::abs(x) * 1e-14;
  }
  if (a.is_array() && b.is_array()) {
    const auto& x = a.get_array();
    const auto& y = b.get_array();
    bool equal = x.size() == y.size();
    for (std::size_t i = 0; equal && i < x.size(); ++i) equal = same(x[i], y[i]);
    return equal;
  }
  if (a.is_object() && b.is_object()) {
    const auto& x = a.get_object();
    const auto& y = b.get_object();
    if (x.size() != y.size()) return false;
    for (const auto& member : x) {
      const Value* other = y.if_contains(member.key());
      if (other == nullptr || !same(member.value(), *other)) return false;
    }
    return true;
  }
  return a == b;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = helio::json::parse(text);
  const auto spec = helio::json::parse_as<helio::model::JobSpec>(text);
  if (!value) {
    FUZZ_CHECK(!spec);
    return 0;
  }
  const auto again = helio::json::parse(helio::json::dump(*value));
  FUZZ_CHECK(again && same(*value, *again));
  if (!spec) {
    FUZZ_CHECK(!spec.error().message().empty());
    return 0;
  }
  // What was understood once is understood again, and means the same.
  const auto encoded = helio::json::encode(*spec);
  const auto second = helio::json::decode<helio::model::JobSpec>(encoded);
  FUZZ_CHECK(second && same(encoded, helio::json::encode(*second)));
  return 0;
}
