#include "base/pattern.h"

#include <re2/re2.h>

namespace helio {

struct Pattern::Impl {
  Impl(std::string_view text, const re2::RE2::Options& options) : re(re2::StringPiece(text.data(), text.size()), options) {}
  re2::RE2 re;
};

Pattern::Pattern(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

Result<Pattern> Pattern::compile(std::string_view text) {
  if (text.size() > 1000) return fail(ErrorCode::invalid_argument, "the pattern has {} bytes; at most 1000 are allowed", text.size());
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);
  auto impl = std::make_unique<Impl>(text, options);
  if (!impl->re.ok()) {
    return fail(ErrorCode::invalid_argument, "not a valid pattern (RE2 syntax): {}", impl->re.error());
  }
  return Pattern(std::move(impl));
}

bool Pattern::occurs_in(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), impl_->re);
}

}  // namespace helio
