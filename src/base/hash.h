#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace helio {

/// 64 hex digits.
std::string sha256_hex(std::string_view bytes);

/// Incremental form for large content. Single thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  /// 64 hex digits; the object is used up.
  std::string finish_hex();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Compares without a data-dependent early exit: for tokens.
bool equal_constant_time(std::string_view a, std::string_view b);

}  // namespace helio
