#include "base/json/yaml.h"

#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace helio::json {
namespace {

Value scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return Value(text);  // quoted
  if (text == "null" || text == "~" || text.empty()) return nullptr;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::int64_t integer = 0;
  if (auto [p, ec] = std::from_chars(begin, end, integer); ec == std::errc{} && p == end) return integer;
  double number = 0;
  if (auto [p, ec] = std::from_chars(begin, end, number); ec == std::errc{} && p == end && std::isfinite(number)) return number;
  return Value(text);
}

Result<Value> convert(const YAML::Node& node, int depth, int& budget) {
  if (--budget < 0) return fail(ErrorCode::invalid_argument, "document is too large (more than 10000 values)");
  if (depth > 32) return fail(ErrorCode::invalid_argument, "document is nested deeper than 32 levels");
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return Value(nullptr);
    case YAML::NodeType::Scalar:
      return scalar(node);
    case YAML::NodeType::Sequence: {
      Array out;
      for (const auto& item : node) {
        HELIO_TRY(value, convert(item, depth + 1, budget));
        out.push_back(std::move(value));
      }
      return Value(std::move(out));
    }
    case YAML::NodeType::Map: {
      Object out;
      for (const auto& member : node) {
        if (!member.first.IsScalar()) {
          return fail(ErrorCode::invalid_argument, "line {}: a key must be plain text", member.first.Mark().line + 1);
        }
        const std::string& key = member.first.Scalar();
        if (out.contains(key))
          return fail(ErrorCode::invalid_argument, "line {}: key '{}' appears twice", member.first.Mark().line + 1, key);
        HELIO_TRY(value, convert(member.second, depth + 1, budget));
        out[key] = std::move(value);
      }
      return Value(std::move(out));
    }
  }
  return fail(ErrorCode::internal, "unknown YAML node");
}

/// Whether a literal block says this text exactly: its indentation is found by the first line, and it ends with one newline.
bool fits_literal(std::string_view text) {
  if (!text.ends_with('\n') || text.ends_with("\n\n")) return false;
  if (text[0] == ' ' || text[0] == '\t' || text[0] == '\n') return false;
  return std::ranges::all_of(text, [](char c) { return c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20; });
}

void emit(YAML::Emitter& out, const Value& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& member : value.get_object()) {
      out << YAML::Key << std::string(member.key()) << YAML::Value;
      emit(out, member.value());
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Value& item : value.get_array()) emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const std::string text(value.get_string());
    const bool plain = scalar(YAML::Node(text)).is_string() && !text.empty();
    if (fits_literal(text)) {
      out << YAML::Literal << text;
    } else if (plain && !text.contains('\n')) {
      out << text;
    } else {
      out << YAML::DoubleQuoted << text;
    }
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << dump(value);
  }
}

}  // namespace

Result<Value> from_yaml(std::string_view text) {
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    int budget = 10'000;
    return convert(root, 0, budget);
  } catch (const YAML::Exception& e) {
    return fail(ErrorCode::invalid_argument, "not valid YAML at line {}, column {}: {}", e.mark.line + 1, e.mark.column + 1, e.msg);
  }
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace helio::json
