#pragma once
#include "base/error.h"

#include <memory>
#include <string_view>

namespace helio {

/// A pattern that a user wrote, in RE2's syntax: linear time and bounded memory whatever it says. Any thread.
class Pattern {
 public:
  /// Error: invalid_argument that says what is wrong with it; at most 1000 bytes.
  static Result<Pattern> compile(std::string_view text);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// True when it occurs anywhere in `text`.
  [[nodiscard]] bool occurs_in(std::string_view text) const;

 private:
  struct Impl;
  explicit Pattern(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helio
