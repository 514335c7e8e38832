#pragma once
#include "base/json/json.h"

namespace helio::json {

/// One YAML document as JSON (core schema: null, true/false, integers, floats, else strings; quoted scalars stay strings).
/// Errors: invalid_argument with line and column; anchors that expand to over 10,000 values are refused.
Result<Value> from_yaml(std::string_view text);
/// Block-style YAML that from_yaml reads back to the same value.
std::string to_yaml(const Value& value);

}  // namespace helio::json
