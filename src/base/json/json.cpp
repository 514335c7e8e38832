#include "base/json/describe.h"
#include "base/utf8.h"

#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <limits>

namespace helio::json {
namespace {

void pretty(const Value& value, std::string& out, std::size_t indent) {
  if (value.is_object() && !value.get_object().empty()) {
    out += "{\n";
    bool first = true;
    for (const auto& member : value.get_object()) {
      if (!first) out += ",\n";
      first = false;
      out.append(indent + 2, ' ');
      out += boost::json::serialize(member.key()) + ": ";
      pretty(member.value(), out, indent + 2);
    }
    out += '\n';
    out.append(indent, ' ');
    out += '}';
  } else if (value.is_array() && !value.get_array().empty()) {
    out += "[\n";
    bool first = true;
    for (const Value& item : value.get_array()) {
      if (!first) out += ",\n";
      first = false;
      out.append(indent + 2, ' ');
      pretty(item, out, indent + 2);
    }
    out += '\n';
    out.append(indent, ' ');
    out += ']';
  } else {
    out += dump(value);
  }
}

std::string_view kind_name(const Value& v) {
  switch (v.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "?";
}

bool plain_key(std::string_view key) {
  if (key.empty()) return false;
  for (const char c : key) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) return false;
  }
  return true;
}

template <class Int>
bool read_int(const Value& v, Reader& r, Int& out) {
  if (v.is_int64()) {
    const std::int64_t n = v.get_int64();
    if (std::cmp_less(n, std::numeric_limits<Int>::min()) || std::cmp_greater(n, std::numeric_limits<Int>::max())) {
      return r.fail("integer out of range");
    }
    out = static_cast<Int>(n);
    return true;
  }
  if (v.is_uint64()) {
    const std::uint64_t n = v.get_uint64();
    if (std::cmp_greater(n, std::numeric_limits<Int>::max())) return r.fail("integer out of range");
    out = static_cast<Int>(n);
    return true;
  }
  return r.expected("integer", v);
}

/// The path of a number that no double holds, from its end to its beginning; false when there is none.
bool find_infinite(const Value& v, std::string& path) {
  if (v.is_double()) return !std::isfinite(v.get_double());
  if (v.is_object()) {
    for (const auto& member : v.get_object()) {
      if (!find_infinite(member.value(), path)) continue;
      const std::string key(member.key());
      path.insert(0, plain_key(key) ? "." + key : "[" + dump(Value(key)) + "]");
      return true;
    }
  } else if (v.is_array()) {
    const Array& items = v.get_array();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!find_infinite(items[i], path)) continue;
      path.insert(0, "[" + std::to_string(i) + "]");
      return true;
    }
  }
  return false;
}

/// Strings that came from outside may hold any bytes; outside of strings JSON is ASCII, so the text as a whole can be looked at.
std::string valid(std::string text) { return is_utf8(text) ? std::move(text) : escape_utf8(text, "\\\\x"); }

}  // namespace

Result<Value> parse(std::string_view text, boost::json::storage_ptr storage) {
  boost::system::error_code ec;
  std::array<unsigned char, 2048> scratch;
  boost::json::parser parser({}, {}, scratch.data(), scratch.size());
  parser.reset(std::move(storage));
  const std::size_t used = parser.write_some(text.data(), text.size(), ec);
  if (ec) return fail(ErrorCode::invalid_argument, "not valid JSON at byte {}: {}", used, ec.message());
  for (std::size_t i = used; i < text.size(); ++i) {
    if (text[i] != ' ' && text[i] != '\n' && text[i] != '\t' && text[i] != '\r') {
      return fail(ErrorCode::invalid_argument, "not valid JSON at byte {}: more text after the value", i);
    }
  }
  Value value = parser.release();
  std::string path;
  if (find_infinite(value, path)) return fail(Error(ErrorCode::invalid_argument, "the number is too large").at("$" + path));
  return value;
}

std::string dump(const Value& value) { return valid(boost::json::serialize(value)); }

std::string dump_pretty(const Value& value) {
  std::string out;
  pretty(value, out, 0);
  return valid(std::move(out));
}

Value merge_diff(const Value& from, const Value& to) {
  if (!from.is_object() || !to.is_object()) return to;
  Object patch;
  const Object& old_members = from.get_object();
  const Object& new_members = to.get_object();
  for (const auto& member : old_members) {
    if (!new_members.contains(member.key())) patch[member.key()] = nullptr;
  }
  for (const auto& member : new_members) {
    const Value* before = old_members.if_contains(member.key());
    if (before == nullptr) {
      patch[member.key()] = member.value();
    } else if (*before != member.value()) {
      // An object that lost all its members differs by nulls only, so recursing is right for objects of any size.
      patch[member.key()] = merge_diff(*before, member.value());
    }
  }
  return patch;
}

void merge_apply(Value& target, const Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Object{};
  Object& members = target.get_object();
  for (const auto& member : patch.get_object()) {
    if (member.value().is_null()) {
      members.erase(member.key());
    } else {
      merge_apply(members[member.key()], member.value());
    }
  }
}

bool Reader::fail(std::string message) {
  if (!error_) error_ = Error(ErrorCode::invalid_argument, std::move(message)).at(path_);
  return false;
}

bool Reader::expected(std::string_view what, const Value& got) { return fail(fmt::format("expected {}, got {}", what, kind_name(got))); }

Reader::Step::Step(Reader& reader, std::string_view member) : reader_(reader), size_(reader.path_.size()) {
  if (plain_key(member)) {
    reader_.path_ += '.';
    reader_.path_ += member;
  } else {
    reader_.path_ += "['" + std::string(member) + "']";
  }
}
Reader::Step::Step(Reader& reader, std::size_t index) : reader_(reader), size_(reader.path_.size()) {
  reader_.path_ += '[' + std::to_string(index) + ']';
}

namespace detail {
std::string short_name(std::string_view qualified) {
  const auto colon = qualified.rfind(':');
  return std::string(colon == std::string_view::npos ? qualified : qualified.substr(colon + 1));
}
}  // namespace detail

bool Codec<bool>::read(const Value& v, Reader& r, bool& out) {
  if (!v.is_bool()) return r.expected("boolean", v);
  out = v.get_bool();
  return true;
}
Value Codec<bool>::write(const bool& value) { return Value(value); }
Value Codec<bool>::schema(Schemas&) { return Object{{"type", "boolean"}}; }

bool Codec<std::int32_t>::read(const Value& v, Reader& r, std::int32_t& out) { return read_int(v, r, out); }
Value Codec<std::int32_t>::write(const std::int32_t& value) { return Value(value); }
Value Codec<std::int32_t>::schema(Schemas&) { return Object{{"type", "integer"}, {"format", "int32"}}; }

bool Codec<std::int64_t>::read(const Value& v, Reader& r, std::int64_t& out) { return read_int(v, r, out); }
Value Codec<std::int64_t>::write(const std::int64_t& value) { return Value(value); }
Value Codec<std::int64_t>::schema(Schemas&) { return Object{{"type", "integer"}, {"format", "int64"}}; }

bool Codec<std::uint64_t>::read(const Value& v, Reader& r, std::uint64_t& out) { return read_int(v, r, out); }
Value Codec<std::uint64_t>::write(const std::uint64_t& value) { return Value(value); }
Value Codec<std::uint64_t>::schema(Schemas&) { return Object{{"type", "integer"}, {"format", "int64"}, {"minimum", 0}}; }

bool Codec<double>::read(const Value& v, Reader& r, double& out) {
  if (!v.is_number()) return r.expected("number", v);
  out = v.to_number<double>();
  return std::isfinite(out) ? true : r.fail("number out of range");
}
Value Codec<double>::write(const double& value) { return Value(value); }
Value Codec<double>::schema(Schemas&) { return Object{{"type", "number"}}; }

bool Codec<std::string>::read(const Value& v, Reader& r, std::string& out) {
  if (!v.is_string()) return r.expected("string", v);
  out.assign(v.get_string().data(), v.get_string().size());
  return true;
}
Value Codec<std::string>::write(const std::string& value) { return Value(value); }
Value Codec<std::string>::schema(Schemas&) { return Object{{"type", "string"}}; }

bool Codec<Timestamp>::read(const Value& v, Reader& r, Timestamp& out) {
  if (!v.is_string()) return r.expected("time such as 2026-01-31T12:00:00Z", v);
  const auto parsed = parse_time(std::string_view(v.get_string()));
  if (!parsed) return r.fail("expected time such as 2026-01-31T12:00:00Z");
  out = *parsed;
  return true;
}
Value Codec<Timestamp>::write(const Timestamp& value) { return Value(format_time(value)); }
Value Codec<Timestamp>::schema(Schemas&) { return Object{{"type", "string"}, {"format", "date-time"}}; }

bool Codec<Bytes>::read(const Value& v, Reader& r, Bytes& out) {
  if (v.is_string()) {
    const auto parsed = parse_bytes(std::string_view(v.get_string()));
    if (!parsed) return r.fail("expected a size such as 512MiB, 4GiB or a number of bytes");
    out = *parsed;
    return true;
  }
  std::int64_t n = 0;
  if (!v.is_int64() && !v.is_uint64()) return r.expected("size such as 4GiB or a number of bytes", v);
  if (!read_int(v, r, n)) return false;
  if (n < 0) return r.fail("a size cannot be negative");
  out = Bytes{n};
  return true;
}
Value Codec<Bytes>::write(const Bytes& value) { return Value(value.n); }
Value Codec<Bytes>::schema(Schemas&) {
  return Object{{"type", Array{"integer", "string"}}, {"description", "bytes, or text such as 4GiB"}};
}

bool Codec<MilliCpu>::read(const Value& v, Reader& r, MilliCpu& out) {
  if (!v.is_number()) return r.expected("number of CPUs", v);
  const auto cpus = v.to_number<double>();
  if (!(cpus >= 0) || cpus > 1e6) return r.fail("expected a number of CPUs between 0 and 1000000");
  out = MilliCpu{std::llround(cpus * 1000)};
  return true;
}
Value Codec<MilliCpu>::write(const MilliCpu& value) {
  if (value.n % 1000 == 0) return Value(value.n / 1000);
  return Value(static_cast<double>(value.n) / 1000.0);
}
Value Codec<MilliCpu>::schema(Schemas&) { return Object{{"type", "number"}, {"description", "CPUs, to a thousandth"}}; }

bool Codec<Span>::read(const Value& v, Reader& r, Span& out) {
  if (v.is_string()) {
    const auto parsed = parse_duration(std::string_view(v.get_string()));
    if (!parsed) return r.fail("expected a duration such as 90s, 10m or 1h30m");
    out.d = *parsed;
    return true;
  }
  if (!v.is_number()) return r.expected("duration such as 90s or a number of seconds", v);
  const auto seconds = v.to_number<double>();
  if (!(seconds >= 0) || seconds > 1e9) return r.fail("expected a duration of 0 to 1000000000 seconds");
  out.d = Duration(std::llround(seconds * 1e6));
  return true;
}
Value Codec<Span>::write(const Span& value) {
  if (value.d.count() % 1'000'000 == 0) return Value(value.d.count() / 1'000'000);
  return Value(static_cast<double>(value.d.count()) / 1e6);
}
Value Codec<Span>::schema(Schemas&) {
  return Object{{"type", Array{"number", "string"}}, {"description", "seconds, or text such as 1h30m"}};
}

bool Codec<Value>::read(const Value& v, Reader&, Value& out) {
  out = v;
  return true;
}
Value Codec<Value>::write(const Value& value) { return value; }
Value Codec<Value>::schema(Schemas&) { return Object{}; }

bool Codec<Object>::read(const Value& v, Reader& r, Object& out) {
  if (!v.is_object()) return r.expected("object", v);
  out = v.get_object();
  return true;
}
Value Codec<Object>::write(const Object& value) { return Value(value); }
Value Codec<Object>::schema(Schemas&) { return Object{{"type", "object"}}; }

}  // namespace helio::json
