// The compiled halves of Beast and of Asio's TLS (BOOST_BEAST_SEPARATE_COMPILATION, BOOST_ASIO_SEPARATE_COMPILATION): once per program.
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>

#include <sys/random.h>
#include <cstdint>

/// Beast seeds its websocket masks from std::random_device, which Debian's libstdc++ takes from this function of glibc 2.36. Ours keeps
/// programs with the archive of libstdc++ inside running on glibc 2.34 (tools/check_floor.py).
extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t out = 0;
  while (::getrandom(&out, sizeof out, 0) != sizeof out) {
  }
  return out;
}
