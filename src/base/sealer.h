#pragma once
#include "base/error.h"

#include <string>
#include <string_view>

namespace helio {

/// Seals secrets before they are stored. Implemented in auth/; control and service see only this. Any thread.
class Sealer {
 public:
  virtual ~Sealer() = default;
  [[nodiscard]] virtual std::string seal(std::string_view clear) const = 0;
  /// Error: internal when the bytes were made with another key or were changed.
  [[nodiscard]] virtual Result<std::string> open(std::string_view sealed) const = 0;
};

}  // namespace helio
