#pragma once
// The heavy half of json.h: include it only in the .cpp that defines a struct's codec.

#include "base/json/json.h"

#include <boost/describe.hpp>
#include <boost/mp11.hpp>

namespace helio::json::detail {

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>;

template <class T>
constexpr bool is_required(std::string_view name) {
  if constexpr (requires { T::kRequired; }) {
    for (std::string_view required : T::kRequired) {
      if (required == name) return true;
    }
  }
  return false;
}

template <class T>
constexpr bool is_optional_v = false;
template <class T>
constexpr bool is_optional_v<std::optional<T>> = true;

/// Unqualified name of T, as it appears in schemas.
std::string short_name(std::string_view qualified);

template <class T>
bool read_struct(const Value& v, Reader& r, T& out) {
  if (!v.is_object()) return r.expected("object", v);
  const Object& object = v.get_object();
  bool ok = true;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    if (!ok) return;
    const std::string_view name = member.name;
    const auto* found = object.if_contains(name);
    if (found == nullptr) {
      if (is_required<T>(name)) {
        const Reader::Step step(r, name);
        ok = r.fail("missing field");
      }
      return;
    }
    const Reader::Step step(r, name);
    using M = std::remove_reference_t<decltype(out.*member.pointer)>;
    ok = Codec<M>::read(*found, r, out.*member.pointer);
  });
  if (!ok || r.unknown() == Unknown::ignore) return ok;
  for (const auto& entry : object) {
    bool known = false;
    std::string names;
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      known = known || std::string_view(member.name) == std::string_view(entry.key());
      names += (names.empty() ? "" : ", ") + std::string(member.name);
    });
    if (!known) {
      const Reader::Step step(r, std::string_view(entry.key()));
      return r.fail("unknown field; known are " + names);
    }
  }
  return true;
}

template <class T>
Value write_struct(const T& value) {
  Object out;
  out.reserve(boost::mp11::mp_size<Members<T>>::value);
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using M = std::remove_cvref_t<decltype(value.*member.pointer)>;
    if constexpr (is_optional_v<M>) {
      if (!(value.*member.pointer).has_value()) return;
    }
    out.emplace(member.name, Codec<M>::write(value.*member.pointer));
  });
  return out;
}

template <class T>
Value schema_struct(Schemas& schemas, std::string_view qualified) {
  const std::string name = short_name(qualified);
  Value reference = Object{{"$ref", "#/components/schemas/" + name}};
  if (schemas.contains(name)) return reference;
  schemas[name] = nullptr;  // stops recursion
  Object properties;
  Array required;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using M = std::remove_cvref_t<decltype(std::declval<T&>().*member.pointer)>;
    properties[member.name] = Codec<M>::schema(schemas);
    if (is_required<T>(member.name)) required.push_back(Value(member.name));
  });
  Object schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schemas[name] = std::move(schema);
  return reference;
}

template <class E>
std::string_view enum_name_of(E value) {
  std::string_view out = "?";
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto d) {
    if (d.value == value) out = d.name;
  });
  return out;
}
template <class E>
std::optional<E> enum_from_name(std::string_view name) {
  std::optional<E> out;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto d) {
    if (name == d.name) out = d.value;
  });
  return out;
}
template <class E>
std::string enum_list() {
  std::string names;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>(
      [&](auto d) { names += (names.empty() ? "" : ", ") + std::string(d.name); });
  return names;
}
template <class E>
bool read_enum(const Value& v, Reader& r, E& out) {
  if (!v.is_string()) return r.expected("one of " + enum_list<E>(), v);
  const auto found = enum_from_name<E>(std::string_view(v.get_string()));
  if (!found) return r.fail("unknown value '" + std::string(v.get_string()) + "'; expected one of " + enum_list<E>());
  out = *found;
  return true;
}
template <class E>
Value schema_enum() {
  Array names;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto d) { names.push_back(Value(d.name)); });
  return Object{{"type", "string"}, {"enum", std::move(names)}};
}

}  // namespace helio::json::detail

#define HELIO_JSON_DEFINE(T)                                                                                        \
  bool helio::json::Codec<T>::read(const Value& v, Reader& r, T& out) { return detail::read_struct<T>(v, r, out); } \
  helio::json::Value helio::json::Codec<T>::write(const T& value) { return detail::write_struct<T>(value); }        \
  helio::json::Value helio::json::Codec<T>::schema(Schemas& schemas) { return detail::schema_struct<T>(schemas, #T); }

#define HELIO_JSON_DEFINE_ENUM(T)                                                                                   \
  bool helio::json::Codec<T>::read(const Value& v, Reader& r, T& out) { return detail::read_enum<T>(v, r, out); }   \
  helio::json::Value helio::json::Codec<T>::write(const T& value) { return Value(detail::enum_name_of<T>(value)); } \
  helio::json::Value helio::json::Codec<T>::schema(Schemas&) { return detail::schema_enum<T>(); }                   \
  template <>                                                                                                       \
  std::string_view helio::json::enum_name<T>(T value) {                                                             \
    return detail::enum_name_of<T>(value);                                                                          \
  }                                                                                                                 \
  template <>                                                                                                       \
  std::optional<T> helio::json::enum_from<T>(std::string_view name) {                                               \
    return detail::enum_from_name<T>(name);                                                                         \
  }
