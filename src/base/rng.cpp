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

namespace {

/// `digits` characters, each from the next `bits` bits of chance: a draw may be a system call, so none is wasted.
std::string random_digits(Rng& rng, std::string_view alphabet, int bits, int digits) {
  std::string out;
  std::uint64_t pool = 0;
  int left = 0;
  for (int i = 0; i < digits; ++i) {
    if (left < bits) {
      pool = rng.next();
      left = 64;
    }
    out += alphabet[pool & ((1U << static_cast<unsigned>(bits)) - 1U)];
    pool >>= static_cast<unsigned>(bits);
    left -= bits;
  }
  return out;
}

}  // namespace

std::string random_base32(Rng& rng, int digits) { return random_digits(rng, "0123456789abcdefghjkmnpqrstvwxyz", 5, digits); }

std::string random_hex(Rng& rng, int bytes) { return random_digits(rng, "0123456789abcdef", 4, 2 * bytes); }

}  // namespace helio
