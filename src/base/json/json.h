#pragma once
// Described structs <-> JSON, one definition for reader, writer and schema.
//
// In a header:  struct Foo { int a = 0; std::optional<Bar> b; static constexpr std::array kRequired{std::string_view("a")}; };
//               HELIO_JSON(helio::model::Foo)                      (at global scope, after the namespace)
// In one .cpp:  #include "base/json/describe.h"
//               BOOST_DESCRIBE_STRUCT(Foo, (), (a, b))             (in Foo's namespace)
//               HELIO_JSON_DEFINE(helio::model::Foo)               (at global scope)
//
// A member that is not named in kRequired may be missing and then keeps its initialiser. Enumerations (HELIO_JSON_ENUM and
// BOOST_DESCRIBE_ENUM) are their enumerators' names. Writing leaves out empty optionals and nothing else.

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"

#include <array>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace helio::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;

/// Text to value, in the memory of `storage` (default: the heap). Depth at most 32. Errors: invalid_argument with the byte offset, or with
/// the path of a number that is too large for a double (it could not be written again).
Result<Value> parse(std::string_view text, boost::json::storage_ptr storage = {});
/// Compact text; keys keep their order. Always valid: a byte that is no part of UTF-8 stands in it as the four characters "\xff".
std::string dump(const Value& value);
/// Indented by two spaces, for people.
std::string dump_pretty(const Value& value);

/// RFC 7396: the patch that turns `from` into `to`. Neither may hold nulls.
Value merge_diff(const Value& from, const Value& to);
void merge_apply(Value& target, const Value& patch);

/// Users' specs refuse unknown fields; wire and stored documents ignore them.
enum class Unknown { refuse, ignore };

/// State of one decode: where we are and the first error.
class Reader {
 public:
  explicit Reader(Unknown unknown) : unknown_(unknown) {}
  [[nodiscard]] Unknown unknown() const { return unknown_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Records the first error; returns false for `return reader.fail(...)`.
  bool fail(std::string message);
  bool expected(std::string_view what, const Value& got);
  [[nodiscard]] std::optional<Error>& error() { return error_; }

  /// Extends the path for the life of the object.
  class Step {
   public:
    Step(Reader& reader, std::string_view member);
    Step(Reader& reader, std::size_t index);
    ~Step() { reader_.path_.resize(size_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Reader& reader_;
    std::size_t size_;
  };

 private:
  Unknown unknown_;
  std::string path_ = "$";
  std::optional<Error> error_;
};

/// Named schemas collected while one is emitted: name -> JSON Schema.
using Schemas = std::map<std::string, Value>;

template <class T>
struct Codec;  // read(const Value&, Reader&, T&) -> bool, write(const T&) -> Value, schema(Schemas&) -> Value

template <class T>
Result<T> decode(const Value& value, Unknown unknown = Unknown::refuse) {
  Reader reader(unknown);
  T out{};
  if (!Codec<T>::read(value, reader, out)) return std::unexpected(std::move(*reader.error()));
  return out;
}
template <class T>
Value encode(const T& object) {
  return Codec<T>::write(object);
}
template <class T>
Result<T> parse_as(std::string_view text, Unknown unknown = Unknown::refuse) {
  // The document is gone once it is decoded: its parts are not worth an allocation each. Copies of values do not stay in it.
  std::array<unsigned char, 4096> first;
  boost::json::monotonic_resource memory(first.data(), first.size());
  HELIO_TRY(value, parse(text, &memory));
  return decode<T>(value, unknown);
}

// --- simple types ---------------------------------------------------------------------------------------------------------------

#define HELIO_JSON_SIMPLE(T)                             \
  template <>                                            \
  struct Codec<T> {                                      \
    static bool read(const Value& v, Reader& r, T& out); \
    static Value write(const T& value);                  \
    static Value schema(Schemas& schemas);               \
  };

HELIO_JSON_SIMPLE(bool)
HELIO_JSON_SIMPLE(std::int32_t)
HELIO_JSON_SIMPLE(std::int64_t)
HELIO_JSON_SIMPLE(std::uint64_t)
HELIO_JSON_SIMPLE(double)
HELIO_JSON_SIMPLE(std::string)
HELIO_JSON_SIMPLE(Timestamp)
HELIO_JSON_SIMPLE(Bytes)
HELIO_JSON_SIMPLE(MilliCpu)
HELIO_JSON_SIMPLE(Span)
HELIO_JSON_SIMPLE(Value)
HELIO_JSON_SIMPLE(Object)

template <class Tag>
struct Codec<Id<Tag>> {
  static bool read(const Value& v, Reader& r, Id<Tag>& out) { return Codec<std::string>::read(v, r, out.value); }
  static Value write(const Id<Tag>& id) { return Value(id.value); }
  static Value schema(Schemas& s) { return Codec<std::string>::schema(s); }
};

template <class T>
struct Codec<std::optional<T>> {
  static bool read(const Value& v, Reader& r, std::optional<T>& out) {
    if (v.is_null()) {
      out.reset();
      return true;
    }
    return Codec<T>::read(v, r, out.emplace());
  }
  static Value write(const std::optional<T>& o) { return o ? Codec<T>::write(*o) : Value(nullptr); }
  static Value schema(Schemas& s) { return Codec<T>::schema(s); }
};

template <class T>
struct Codec<std::vector<T>> {
  static bool read(const Value& v, Reader& r, std::vector<T>& out) {
    if (!v.is_array()) return r.expected("array", v);
    const Array& array = v.get_array();
    out.clear();
    out.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i) {
      const Reader::Step step(r, i);
      T item{};
      if (!Codec<T>::read(array[i], r, item)) return false;
      out.push_back(std::move(item));
    }
    return true;
  }
  static Value write(const std::vector<T>& items) {
    Array out;
    out.reserve(items.size());
    for (const T& item : items) out.push_back(Codec<T>::write(item));
    return out;
  }
  static Value schema(Schemas& s) { return Object{{"type", "array"}, {"items", Codec<T>::schema(s)}}; }
};

template <class T>
struct Codec<std::map<std::string, T>> {
  static bool read(const Value& v, Reader& r, std::map<std::string, T>& out) {
    if (!v.is_object()) return r.expected("object", v);
    out.clear();
    for (const auto& member : v.get_object()) {
      const Reader::Step step(r, std::string_view(member.key()));
      if (!Codec<T>::read(member.value(), r, out[std::string(member.key())])) return false;
    }
    return true;
  }
  static Value write(const std::map<std::string, T>& items) {
    Object out;
    for (const auto& [key, item] : items) out[key] = Codec<T>::write(item);
    return out;
  }
  static Value schema(Schemas& s) { return Object{{"type", "object"}, {"additionalProperties", Codec<T>::schema(s)}}; }
};

}  // namespace helio::json

/// Declares the codec of a described struct; HELIO_JSON_DEFINE (describe.h) defines it in one .cpp.
#define HELIO_JSON(T)                                    \
  template <>                                            \
  struct helio::json::Codec<T> {                         \
    static bool read(const Value& v, Reader& r, T& out); \
    static Value write(const T& value);                  \
    static Value schema(Schemas& schemas);               \
  };

/// Declares codec, to_string and from_string<T> of a described enumeration.
#define HELIO_JSON_ENUM(T)                             \
  HELIO_JSON(T)                                        \
  template <>                                          \
  std::string_view helio::json::enum_name<T>(T value); \
  template <>                                          \
  std::optional<T> helio::json::enum_from<T>(std::string_view name);

namespace helio::json {
/// The enumerator's name as written in JSON.
template <class E>
std::string_view enum_name(E value);
template <class E>
std::optional<E> enum_from(std::string_view name);
}  // namespace helio::json
