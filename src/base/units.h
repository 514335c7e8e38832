#pragma once
// Units in types. JSON forms: Bytes = integer, or "4GiB" in input; MilliCpu = number of CPUs such as 0.5; Span = "10m".

#include "base/clock.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace helio {

struct Bytes {
  std::int64_t n = 0;
  auto operator<=>(const Bytes&) const = default;
  friend Bytes operator+(Bytes a, Bytes b) { return {a.n + b.n}; }
  friend Bytes operator-(Bytes a, Bytes b) { return {a.n - b.n}; }
  Bytes& operator+=(Bytes b) {
    n += b.n;
    return *this;
  }
};
constexpr Bytes operator""_KiB(unsigned long long v) { return {static_cast<std::int64_t>(v << 10)}; }
constexpr Bytes operator""_MiB(unsigned long long v) { return {static_cast<std::int64_t>(v << 20)}; }
constexpr Bytes operator""_GiB(unsigned long long v) { return {static_cast<std::int64_t>(v << 30)}; }

/// Thousandths of one CPU, as Kubernetes counts them.
struct MilliCpu {
  std::int64_t n = 0;
  auto operator<=>(const MilliCpu&) const = default;
  friend MilliCpu operator+(MilliCpu a, MilliCpu b) { return {a.n + b.n}; }
  friend MilliCpu operator-(MilliCpu a, MilliCpu b) { return {a.n - b.n}; }
  MilliCpu& operator+=(MilliCpu b) {
    n += b.n;
    return *this;
  }
};

/// A length of time in a spec. Zero means "none" where the field says so.
struct Span {
  Duration d{0};
  auto operator<=>(const Span&) const = default;
};

/// "512MiB", "4GiB", "4G", "1.5GB", "1048576". Empty when malformed, negative or over 2^62.
std::optional<Bytes> parse_bytes(std::string_view text);
std::string format_bytes(Bytes bytes);  ///< "4GiB", "1.5GiB", "300MiB"
std::string format_cpu(MilliCpu cpu);   ///< "2", "0.5"

}  // namespace helio
