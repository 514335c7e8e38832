#pragma once
// Browsers: a cookie instead of a token, and links that open once. Both are 256 random bits, shown once, kept as SHA-256, and good for as
// long as the token behind them is.

#include "auth/tokens.h"

#include <atomic>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace helio::auth {

struct NewSession {
  model::BrowserSession session;
  std::string secret;  ///< the only time that it is seen
};

/// Who sits at a browser, and what of it they may see.
struct BrowserIdentity {
  Identity who;
  std::optional<JobId> job;  ///< only this job's pages
  bool read_only = false;
  SessionId session{};  ///< empty: came with a token
};

inline constexpr Duration kSessionLife = std::chrono::hours(12);
inline constexpr Duration kLinkLife = std::chrono::minutes(10);
inline constexpr std::size_t kMostOfAToken = 64;  ///< browsers and unopened links

/// Any thread. All must outlive it.
class Sessions {
 public:
  /// `rng` must be fit for secrets.
  Sessions(store::Store& store, const Clock& clock, Rng& rng, Tokens& tokens);
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  /// Errors: those of Tokens::authenticate.
  Result<NewSession> login(std::string_view bearer, std::string_view peer);
  /// A link that its holder may give away: it opens once, within kLinkLife, and shows one job as `who` sees it.
  Result<NewSession> make_link(const Identity& who, const JobId& job, bool read_only);
  /// Of two that open a link at once, one gets a session. Error: unauthenticated for a link that is wrong, used, over its time, or whose
  /// token is gone.
  Result<NewSession> open_link(std::string_view secret);
  /// Nothing for a cookie that is wrong, over its time, or whose token is gone.
  Result<std::optional<BrowserIdentity>> find(std::string_view secret);
  /// The same answer from memory alone, without waiting for anybody: nothing also means "ask the other way".
  std::optional<BrowserIdentity> known(std::string_view secret);
  /// When a browser's session ends by its own time; nothing when it has ended. Its token may end before.
  Result<std::optional<Timestamp>> end_of(const SessionId& id);
  /// The same from memory alone; nothing also means "ask the other way".
  std::optional<Timestamp> known_end_of(const SessionId& id);
  /// From its return on the cookie is refused. One that is not good any more is no error.
  Result<void> logout(std::string_view secret);

 private:
  [[nodiscard]] bool is_current() const;
  Result<void> refresh();
  Result<std::optional<model::BrowserSession>> row_of(std::string_view secret);
  // Under mutex_.
  [[nodiscard]] std::optional<model::BrowserSession> by_hash(std::string_view hash) const;
  [[nodiscard]] std::optional<Timestamp> end_by_id(const SessionId& id) const;
  Result<NewSession> create(store::WriteTx& tx, model::BrowserSession session, const Identity& who, std::string message);
  /// Takes away what is over, and the oldest of `whose` so that there is room for one more.
  Result<void> sweep(store::WriteTx& tx, const TokenId& whose);

  store::Store& store_;
  const Clock& clock_;
  Rng& rng_;
  Tokens& tokens_;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, model::BrowserSession> by_hash_;
  std::unordered_map<SessionId, std::string> hashes_;
  std::atomic<std::int64_t> loaded_{-1};
};

}  // namespace helio::auth
