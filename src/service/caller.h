#pragma once
#include "model/access.h"

#include <string>

namespace helio::service {

/// Who makes a request, after authentication.
struct Caller {
  std::string principal;
  model::AccessRole role = model::AccessRole::viewer;
  TokenId token{};       ///< by which; empty inside of heliostat
  model::Scope scope{};  ///< what there is for it
};

/// A create that may be repeated: the same key with the same body answers the first reply again, another body is a conflict.
struct Idempotency {
  std::string route;
  std::string key;  ///< empty: none
  std::string body_hash;
};

}  // namespace helio::service
