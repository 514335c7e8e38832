#pragma once
// API tokens: 256 random bits, shown once, kept as SHA-256. Authentication does not touch the store unless a token was changed since.

#include "auth/login_limiter.h"
#include "base/rng.h"
#include "model/access.h"
#include "store/store.h"

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace helio::auth {

struct Identity {
  TokenId token;
  std::string principal;
  model::AccessRole role = model::AccessRole::viewer;
  model::Scope scope{};
  std::optional<Timestamp> expires{};
};

struct NewToken {
  model::Token token;
  std::string secret;  ///< the only time that it is seen
};

/// Any thread. The store must outlive it.
class Tokens {
 public:
  /// `rng` must be fit for secrets.
  Tokens(store::Store& store, const Clock& clock, Rng& rng);
  ~Tokens();
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  /// Makes sure that `file` (0600) holds a token of role admin that works: at the first start, or when either side was lost.
  Result<void> ensure_admin(const std::string& file);

  /// Who holds this token. Errors: unauthenticated for none, a wrong or an expired one; resource_exhausted (retry_after in seconds) once
  /// `peer` has sent too many wrong ones. A right token is always accepted, so that nobody can lock others out of a shared address.
  Result<Identity> authenticate(std::string_view bearer, std::string_view peer);

  /// The holder of a token that is good, by its id; nothing when it was revoked or has expired.
  Result<std::optional<Identity>> holder(const TokenId& id);
  /// The same answers from memory alone, without waiting for anybody: nothing also means "ask the other way".
  std::optional<Identity> known(std::string_view bearer);
  std::optional<Identity> known_holder(const TokenId& id);

  /// Errors: invalid_argument for a name, principal or workspace that is empty, long or holds other than letters, digits and `._@-`; for a
  /// principal that events name for heliostat's own parts; for an end in the past; for a scope with a role that acts on the whole pool.
  Result<NewToken> create(std::string_view actor, std::string name, std::string principal, model::AccessRole role,
                          std::optional<Timestamp> expires, model::Scope scope = {});
  Result<std::vector<model::Token>> list();
  /// From its return on the token is refused. Errors: not_found; precondition_failed for the one that ensure_admin() looks after.
  Result<void> revoke(std::string_view actor, const TokenId& id);

 private:
  struct Known {
    Identity identity;
    std::string hash;
    std::optional<Timestamp> expires;
  };

  [[nodiscard]] bool is_current() const;
  Result<void> refresh();
  Result<std::optional<Identity>> find(std::string_view hash);
  // Under mutex_.
  [[nodiscard]] std::optional<Identity> by_hash(std::string_view hash) const;
  [[nodiscard]] std::optional<Identity> by_id(const TokenId& id) const;

  store::Store& store_;
  const Clock& clock_;
  Rng& rng_;
  LoginLimiter limiter_;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, Known> by_hash_;
  std::unordered_map<TokenId, std::string> hashes_;
  std::atomic<std::int64_t> loaded_{-1};  ///< revision that by_hash_ is of; -1: nothing loaded yet
};

}  // namespace helio::auth
