#include "auth/sessions.h"

#include "base/hash.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace helio::auth {
namespace {

using model::BrowserSession;

constexpr std::size_t kLongestSecret = 256;

store::Event event_of(std::string_view actor, Timestamp now, std::string type, std::string message, const std::optional<JobId>& job) {
  store::Event event;
  event.at = now;
  event.actor = actor;
  event.type = std::move(type);
  event.message = std::move(message);
  if (job) event.job = job->value;
  return event;
}

BrowserIdentity identity_of(Identity who, const BrowserSession& session) {
  return {std::move(who), session.job, session.read_only, session.id};
}

}  // namespace

Sessions::Sessions(store::Store& store, const Clock& clock, Rng& rng, Tokens& tokens)
    : store_(store), clock_(clock), rng_(rng), tokens_(tokens) {}
Sessions::~Sessions() = default;

bool Sessions::is_current() const {
  const std::int64_t loaded = loaded_.load(std::memory_order_acquire);
  return loaded >= 0 && loaded >= store_.changed(model::KindOf<BrowserSession>::name);
}

Result<void> Sessions::refresh() {
  const std::unique_lock lock(mutex_);
  if (is_current()) return {};  // another thread did it
  return store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(revision, tx.revision());
    HELIO_TRY(sessions, tx.list<BrowserSession>());
    by_hash_.clear();
    hashes_.clear();
    for (BrowserSession& session : sessions.items) {
      std::string hash = session.hash;
      hashes_[session.id] = hash;
      by_hash_[std::move(hash)] = std::move(session);
    }
    loaded_.store(revision, std::memory_order_release);
    return {};
  });
}

std::optional<BrowserSession> Sessions::by_hash(std::string_view hash) const {
  const auto found = by_hash_.find(std::string(hash));
  if (found == by_hash_.end() || !equal_constant_time(found->second.hash, hash)) return std::nullopt;
  if (found->second.expires <= clock_.now()) return std::nullopt;
  return found->second;
}

Result<std::optional<BrowserSession>> Sessions::row_of(std::string_view secret) {
  if (secret.empty() || secret.size() > kLongestSecret) return std::optional<BrowserSession>{};
  if (!is_current()) HELIO_CHECK_OK(refresh());
  const std::shared_lock lock(mutex_);
  return by_hash(sha256_hex(secret));
}

Result<std::optional<BrowserIdentity>> Sessions::find(std::string_view secret) {
  HELIO_TRY(session, row_of(secret));
  if (!session || session->link) return std::optional<BrowserIdentity>{};
  HELIO_TRY(who, tokens_.holder(session->token));
  if (!who) return std::optional<BrowserIdentity>{};
  return std::optional(identity_of(std::move(*who), *session));
}

std::optional<BrowserIdentity> Sessions::known(std::string_view secret) {
  if (secret.empty() || secret.size() > kLongestSecret) return std::nullopt;
  const std::shared_lock lock(mutex_, std::try_to_lock);
  if (!lock || !is_current()) return std::nullopt;
  const std::optional<BrowserSession> session = by_hash(sha256_hex(secret));
  if (!session || session->link) return std::nullopt;
  std::optional<Identity> who = tokens_.known_holder(session->token);
  return who ? std::optional(identity_of(std::move(*who), *session)) : std::nullopt;
}

std::optional<Timestamp> Sessions::end_by_id(const SessionId& id) const {
  const auto hash = hashes_.find(id);
  if (hash == hashes_.end()) return std::nullopt;
  const std::optional<BrowserSession> session = by_hash(hash->second);
  return session ? std::optional(session->expires) : std::nullopt;
}

Result<std::optional<Timestamp>> Sessions::end_of(const SessionId& id) {
  if (!is_current()) HELIO_CHECK_OK(refresh());
  const std::shared_lock lock(mutex_);
  return end_by_id(id);
}

std::optional<Timestamp> Sessions::known_end_of(const SessionId& id) {
  const std::shared_lock lock(mutex_, std::try_to_lock);
  return lock && is_current() ? end_by_id(id) : std::nullopt;
}

Result<void> Sessions::sweep(store::WriteTx& tx, const TokenId& whose) {
  const Timestamp now = clock_.now();
  HELIO_TRY(sessions, tx.list<BrowserSession>());
  const auto end = [&](const BrowserSession& session, std::string why) {
    return tx.remove<BrowserSession>(session.id.value, event_of("system", now, "session.ended", std::move(why), session.job));
  };
  std::vector<const BrowserSession*> mine;
  for (const BrowserSession& session : sessions.items) {
    HELIO_TRY(token, tx.find<model::Token>(session.token.value));
    if (session.expires <= now || !token) {
      HELIO_CHECK_OK(end(session, "over its time"));
    } else if (session.token == whose) {
      mine.push_back(&session);
    }
  }
  // A person has a few of them; a program that makes them in a loop loses its oldest.
  std::ranges::sort(mine, {}, &BrowserSession::created);
  for (std::size_t i = 0; i + kMostOfAToken <= mine.size(); ++i) HELIO_CHECK_OK(end(*mine[i], "made room for a newer one"));
  return {};
}

Result<NewSession> Sessions::create(store::WriteTx& tx, BrowserSession session, const Identity& who, std::string message) {
  NewSession made{std::move(session), random_hex(rng_, 32)};
  made.session.id = SessionId("s-" + random_base32(rng_, 16));
  made.session.hash = sha256_hex(made.secret);
  made.session.token = who.token;
  made.session.created = clock_.now();
  made.session.expires = made.session.created + (made.session.link ? kLinkLife : kSessionLife);
  HELIO_CHECK_OK(tx.put(made.session, event_of(who.principal, made.session.created, made.session.link ? "session.link" : "session.login",
                                               std::move(message), made.session.job)));
  return made;
}

Result<NewSession> Sessions::login(std::string_view bearer, std::string_view peer) {
  HELIO_TRY(who, tokens_.authenticate(bearer, peer));
  std::optional<NewSession> made;
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(sweep(tx, who.token));
    HELIO_TRY(session, create(tx, {}, who, "a browser logged in"));
    made = std::move(session);
    return {};
  }));
  return std::move(*made);
}

Result<NewSession> Sessions::make_link(const Identity& who, const JobId& job, bool read_only) {
  std::optional<NewSession> made;
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(sweep(tx, who.token));
    BrowserSession wanted;
    wanted.job = job;
    wanted.read_only = read_only;
    wanted.link = true;
    HELIO_TRY(session, create(tx, std::move(wanted), who, read_only ? "a link to look at the dashboard" : "a link to the dashboard"));
    made = std::move(session);
    return {};
  }));
  return std::move(*made);
}

Result<NewSession> Sessions::open_link(std::string_view secret) {
  const auto no = [] { return fail(ErrorCode::unauthenticated, "this link is wrong, was opened before, or is over its time"); };
  HELIO_TRY(link, row_of(secret));
  if (!link || !link->link) return no();
  HELIO_TRY(who, tokens_.holder(link->token));
  if (!who) return no();
  std::optional<NewSession> made;
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(still, tx.find<BrowserSession>(link->id.value));
    if (!still) return no();
    HELIO_CHECK_OK(tx.remove<BrowserSession>(
        link->id.value, event_of(who->principal, clock_.now(), "session.link_opened", "its link was opened", link->job)));
    BrowserSession wanted;
    wanted.job = link->job;
    wanted.read_only = link->read_only;
    HELIO_TRY(session, create(tx, std::move(wanted), *who, "a browser came by a link"));
    made = std::move(session);
    return {};
  }));
  return std::move(*made);
}

Result<void> Sessions::logout(std::string_view secret) {
  HELIO_TRY(session, row_of(secret));
  if (!session || session->link) return {};
  HELIO_TRY(who, tokens_.holder(session->token));
  const std::string actor = who ? who->principal : "system";
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(still, tx.find<BrowserSession>(session->id.value));
    if (!still) return {};
    return tx.remove<BrowserSession>(session->id.value,
                                     event_of(actor, clock_.now(), "session.logout", "a browser logged out", session->job));
  });
}

}  // namespace helio::auth
