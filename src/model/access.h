#pragma once
// Who may call: API tokens, and the browsers of those who hold one. Secrets are hashed at rest.

#include "base/ids.h"
#include "base/json/json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::model {

enum class AccessRole { viewer, developer, op, admin };

/// The workspaces that a caller knows of. What belongs to another one does not exist for it.
struct Scope {
  std::vector<std::string> workspaces;  ///< empty: all of them, and what belongs to the pool alone

  [[nodiscard]] bool is_all() const { return workspaces.empty(); }
  [[nodiscard]] bool holds(std::string_view workspace) const {
    return is_all() || std::ranges::find(workspaces, workspace) != workspaces.end();
  }
};

struct Token {
  TokenId id;
  std::string name;
  std::string principal;  ///< who acts: "admin"
  AccessRole role = AccessRole::viewer;
  std::vector<std::string> workspaces;  ///< see Scope; rows of older versions have none
  std::string hash;                     ///< SHA-256 of the secret
  Timestamp created;
  std::optional<Timestamp> expires;
  std::int64_t revision = 0;
};

/// A browser that showed a token, or a link that becomes such a browser when it is opened. It ends with its token.
struct BrowserSession {
  SessionId id;
  std::string hash;          ///< SHA-256 of the secret in the cookie or the link
  TokenId token;             ///< who acts, and with which role
  std::optional<JobId> job;  ///< only this job's pages
  bool read_only = false;
  bool link = false;  ///< not opened yet
  Timestamp created;
  Timestamp expires;
  std::int64_t revision = 0;
};

}  // namespace helio::model

HELIO_JSON_ENUM(helio::model::AccessRole)
HELIO_JSON(helio::model::Token)
HELIO_JSON(helio::model::BrowserSession)
