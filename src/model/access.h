#pragma once
// Who may call: API tokens, hashed at rest.

#include "base/ids.h"
#include "base/json/json.h"

#include <optional>
#include <string>

namespace helio::model {

enum class AccessRole { viewer, developer, op, admin };

struct Token {
  TokenId id;
  std::string name;
  std::string principal;  ///< who acts: "admin"
  AccessRole role = AccessRole::viewer;
  std::string hash;  ///< SHA-256 of the secret
  Timestamp created;
  std::optional<Timestamp> expires;
  std::int64_t revision = 0;
};

}  // namespace helio::model

HELIO_JSON_ENUM(helio::model::AccessRole)
HELIO_JSON(helio::model::Token)
