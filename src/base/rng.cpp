#include "base/rng.h"

#include "base/check.h"

#include <sys/random.h>
#include <cerrno>

namespace helio {

std::uint64_t SystemRng::next() {
  std::uint64_t out = 0;
  while (::getrandom(&out, sizeof out, 0) != static_cast<ssize_t>(sizeof out)) {
    HELIO_CHECK(errno == EINTR, "getrandom failed");
  }
  return out;
}

std::string random_base32(Rng& rng, int digits) {
  static constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  std::string out;
  for (int i = 0; i < digits; ++i) out += kAlphabet[rng.next() & 31U];
  return out;
}

std::string random_hex(Rng& rng, int bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (int i = 0; i < bytes; ++i) {
    const std::uint64_t b = rng.next();
    out += kHex[b & 15U];
    out += kHex[(b >> 4U) & 15U];
  }
  return out;
}

}  // namespace helio
