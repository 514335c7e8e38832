#pragma once
#include "base/sealer.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace helio::auth {

/// XSalsa20-Poly1305 (libsodium's secretbox) with one key and a random nonce for each value. Any thread.
/// Sealed form: one byte of format, 24 of nonce, the box.
class SecretBoxSealer final : public Sealer {
 public:
  /// Reads the key from `key_file`, or makes both at the first start. Errors: precondition_failed when the file is no key or others may
  /// read it. A lost key makes every sealed value unreadable, so a broken file is refused and never replaced.
  static Result<std::unique_ptr<SecretBoxSealer>> open_file(const std::string& key_file);

  ~SecretBoxSealer() override;
  SecretBoxSealer(const SecretBoxSealer&) = delete;
  SecretBoxSealer& operator=(const SecretBoxSealer&) = delete;

  [[nodiscard]] std::string seal(std::string_view clear) const override;
  [[nodiscard]] Result<std::string> open(std::string_view sealed) const override;

 private:
  using Key = std::array<unsigned char, 32>;
  explicit SecretBoxSealer(const Key& key);
  Key key_;
};

}  // namespace helio::auth
