#pragma once
// Time is injected. Wall time (Timestamp) is what users see and what is stored; MonoTime measures deadlines and survives clock jumps.

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace helio {

using Duration = std::chrono::microseconds;
using std::chrono::duration_cast;
using namespace std::chrono_literals;  // NOLINT: 10s, 50ms are the vocabulary of the whole tree

/// Microseconds since the Unix epoch, UTC. JSON form: RFC 3339 with six digits and Z.
struct Timestamp {
  std::int64_t us = 0;
  auto operator<=>(const Timestamp&) const = default;
  friend Timestamp operator+(Timestamp t, Duration d) { return {t.us + d.count()}; }
  friend Timestamp operator-(Timestamp t, Duration d) { return {t.us - d.count()}; }
  friend Duration operator-(Timestamp a, Timestamp b) { return Duration(a.us - b.us); }
};

/// Microseconds of CLOCK_BOOTTIME: goes on while the machine is suspended, never jumps.
struct MonoTime {
  std::int64_t us = 0;
  auto operator<=>(const MonoTime&) const = default;
  friend MonoTime operator+(MonoTime t, Duration d) { return {t.us + d.count()}; }
  friend Duration operator-(MonoTime a, MonoTime b) { return Duration(a.us - b.us); }
};

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp now() const = 0;
  [[nodiscard]] virtual MonoTime mono() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const override;
  [[nodiscard]] MonoTime mono() const override;
  /// Stateless, so one for all is no hidden dependency; only main(), wiring and the log use it.
  static const SystemClock& instance();
};

/// Moves only when told. Single thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Timestamp start = {1'700'000'000'000'000}) : now_(start) {}
  [[nodiscard]] Timestamp now() const override { return now_; }
  [[nodiscard]] MonoTime mono() const override { return mono_; }
  void advance(Duration by) {
    now_ = now_ + by;
    mono_ = mono_ + by;
  }
  /// A step of the wall clock alone, as NTP or an operator may do.
  void jump_wall(Duration by) { now_ = now_ + by; }

 private:
  Timestamp now_;
  MonoTime mono_{1'000'000};
};

/// "2026-11-30T03:44:43.123456Z"
std::string format_time(Timestamp time);
std::optional<Timestamp> parse_time(std::string_view text);
/// "350ms", "1.2s", "3m10s", "2h5m": for people.
std::string format_duration(Duration d);
/// "90s", "10m", "1h30m", "250ms", "0"; a bare number is seconds. Empty when it is none of these or negative.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace helio
