#pragma once
#include "base/error.h"
#include "model/home.h"
#include "model/settings.h"

#include <string>
#include <string_view>

namespace helio::service {

/// Uploaded zips, addressed by their SHA-256, in <home>/packages.
class Packages {
 public:
  Packages(const model::Home& home, const model::Settings& settings);
  [[nodiscard]] bool exists(std::string_view sha256) const;
  /// Takes a spooled file over. Errors at $: invalid_argument (digest differs, not a zip, entry with an absolute path, `..` or a link out
  /// of it), resource_exhausted (over package_limit), storage_full. Nothing stays behind on error.
  Result<void> put(std::string_view sha256, const std::string& file);
  /// The same under the name that the content gives, which comes back.
  Result<std::string> add(const std::string& file);

 private:
  const model::Home& home_;
  const model::Settings& settings_;
};

}  // namespace helio::service
