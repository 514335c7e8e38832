#pragma once
// Chance is injected, so that a simulation replays by its seed.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace helio {

class Rng {
 public:
  virtual ~Rng() = default;
  /// 64 uniform bits.
  virtual std::uint64_t next() = 0;

  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(double probability) { return static_cast<double>(next() >> 11U) * 0x1.0p-53 < probability; }
};

/// Reproducible (SplitMix64). Not for secrets.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};

/// From getrandom(2); fit for tokens and ids. Any thread.
class SystemRng final : public Rng {
 public:
  std::uint64_t next() override;
};

/// `digits` characters of lower-case base32 without i, l, o, u.
std::string random_base32(Rng& rng, int digits);
/// 2 * `bytes` hex digits; for tokens use a SystemRng.
std::string random_hex(Rng& rng, int bytes);

}  // namespace helio
