// Bodies: JSON text into values and job specs, and back.

#include "base/json/json.h"
#include "check.h"
#include "model/job.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = helio::json::parse(text);
  const auto spec = helio::json::parse_as<helio::model::JobSpec>(text);
  if (!value) {
    FUZZ_CHECK(!spec);
    return 0;
  }
  const auto again = helio::json::parse(helio::json::dump(*value));
  FUZZ_CHECK(again && *again == *value);
  if (!spec) {
    FUZZ_CHECK(!spec.error().message().empty());
    return 0;
  }
  // What was understood once is understood again, and means the same.
  const auto encoded = helio::json::encode(*spec);
  const auto second = helio::json::decode<helio::model::JobSpec>(encoded);
  FUZZ_CHECK(second && helio::json::encode(*second) == encoded);
  return 0;
}
