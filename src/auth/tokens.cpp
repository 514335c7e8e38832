#include "auth/tokens.h"

#include "auth/secret_file.h"
#include "base/hash.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <mutex>

namespace helio::auth {
namespace {

constexpr std::string_view kPrefix = "hst_";  // so that secret scanners can find a leaked one

constexpr std::string_view kAdmin = "admin";
constexpr std::array<std::string_view, 4> kOwnActors{"agent", "control", "provider", "system"};
constexpr std::string_view kPlain = "expected 1 to 63 letters, digits and . _ @ -";
constexpr std::size_t kMostWorkspaces = 64;

bool is_plain(std::string_view text) {
  constexpr std::string_view kMarks = "._@-";
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kMarks.contains(c);
  };
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, fits);
}

std::string new_secret(Rng& rng) { return std::string(kPrefix) + random_hex(rng, 32); }

/// Checks a scope, and names each workspace once.
Result<void> check_scope(model::Scope& scope, model::AccessRole role) {
  const auto wrong = [](std::string path, std::string why) {
    return fail(Error(ErrorCode::invalid_argument, std::move(why)).at(std::move(path)));
  };
  std::vector<std::string>& names = scope.workspaces;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_plain(names[i])) return wrong(fmt::format("$.workspaces[{}]", i), std::string(kPlain));
  }
  std::ranges::sort(names);
  const auto doubled = std::ranges::unique(names);
  names.erase(doubled.begin(), doubled.end());
  if (names.size() > kMostWorkspaces) return wrong("$.workspaces", fmt::format("at most {} workspaces, or none for all", kMostWorkspaces));
  if (!scope.is_all() && role > model::AccessRole::developer) {
    return wrong("$.workspaces",
                 fmt::format("role {} acts on the whole pool, and not in workspaces alone: give role viewer or developer, or "
                             "leave workspaces out",
                             json::enum_name(role)));
  }
  return {};
}

store::Event event_of(std::string_view actor, Timestamp now, std::string type, std::string message) {
  store::Event event;
  event.at = now;
  event.actor = actor;
  event.type = std::move(type);
  event.message = std::move(message);
  return event;
}

}  // namespace

Tokens::Tokens(store::Store& store, const Clock& clock, Rng& rng) : store_(store), clock_(clock), rng_(rng), limiter_(clock) {}
Tokens::~Tokens() = default;

Result<void> Tokens::ensure_admin(const std::string& file) {
  HELIO_TRY(content, read_secret_file(file));
  if (content) {
    const std::string secret = content->substr(0, content->find('\n'));
    HELIO_TRY(known, find(sha256_hex(secret)));
    if (known && known->role == model::AccessRole::admin) return {};
  }
  const std::string secret = new_secret(rng_);
  // The file first: killed in between, the next start finds a secret that the store does not know and makes another.
  HELIO_CHECK_OK(write_secret_file(file, secret + "\n"));
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(former, tx.find<model::Token>(std::string(kAdmin)));
    model::Token token = former.value_or(model::Token{});
    token.id = TokenId(std::string(kAdmin));
    token.name = token.principal = kAdmin;
    token.role = model::AccessRole::admin;
    token.workspaces.clear();
    token.hash = sha256_hex(secret);
    token.created = clock_.now();
    token.expires.reset();
    return tx.put(token, event_of("system", token.created, "token.created", "token of the administrator"));
  });
}

bool Tokens::is_current() const {
  const std::int64_t loaded = loaded_.load(std::memory_order_acquire);
  return loaded >= 0 && loaded >= store_.changed(model::KindOf<model::Token>::name);
}

Result<void> Tokens::refresh() {
  const std::unique_lock lock(mutex_);
  if (is_current()) return {};  // another thread did it
  return store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(revision, tx.revision());
    HELIO_TRY(tokens, tx.list<model::Token>());
    by_hash_.clear();
    hashes_.clear();
    for (model::Token& token : tokens.items) {
      std::string hash = token.hash;
      hashes_[token.id] = hash;
      Identity identity{token.id, std::move(token.principal), token.role, {std::move(token.workspaces)}, token.expires};
      by_hash_[hash] = {std::move(identity), std::move(token.hash), token.expires};
    }
    loaded_.store(revision, std::memory_order_release);
    return {};
  });
}

std::optional<Identity> Tokens::by_hash(std::string_view hash) const {
  const auto found = by_hash_.find(std::string(hash));
  // The look-up works on a hash of the secret, so its time says nothing about the secret itself.
  if (found == by_hash_.end() || !equal_constant_time(found->second.hash, hash)) return std::nullopt;
  if (found->second.expires && *found->second.expires <= clock_.now()) return std::nullopt;
  return found->second.identity;
}

std::optional<Identity> Tokens::by_id(const TokenId& id) const {
  const auto found = hashes_.find(id);
  return found == hashes_.end() ? std::nullopt : by_hash(found->second);
}

Result<std::optional<Identity>> Tokens::find(std::string_view hash) {
  if (!is_current()) HELIO_CHECK_OK(refresh());
  const std::shared_lock lock(mutex_);
  return by_hash(hash);
}

Result<std::optional<Identity>> Tokens::holder(const TokenId& id) {
  if (!is_current()) HELIO_CHECK_OK(refresh());
  const std::shared_lock lock(mutex_);
  return by_id(id);
}

std::optional<Identity> Tokens::known(std::string_view bearer) {
  const std::shared_lock lock(mutex_, std::try_to_lock);
  if (!lock || !is_current() || bearer.empty() || bearer.size() > 256) return std::nullopt;
  return by_hash(sha256_hex(bearer));
}

std::optional<Identity> Tokens::known_holder(const TokenId& id) {
  const std::shared_lock lock(mutex_, std::try_to_lock);
  return lock && is_current() ? by_id(id) : std::nullopt;
}

Result<Identity> Tokens::authenticate(std::string_view bearer, std::string_view peer) {
  if (!bearer.empty() && bearer.size() <= 256) {
    HELIO_TRY(found, find(sha256_hex(bearer)));
    if (found) return std::move(*found);
  }
  if (const auto wait = limiter_.failed(peer)) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*wait).count();
    return fail(Error(ErrorCode::resource_exhausted, fmt::format("too many wrong tokens from {}; try again in {}s", peer, seconds))
                    .with("retry_after", std::to_string(seconds)));
  }
  if (bearer.empty()) return fail(ErrorCode::unauthenticated, "a token is needed: Authorization: Bearer <token>");
  return fail(ErrorCode::unauthenticated, "the token is wrong, expired or revoked");
}

Result<NewToken> Tokens::create(std::string_view actor, std::string name, std::string principal, model::AccessRole role,
                                std::optional<Timestamp> expires, model::Scope scope) {
  const Timestamp now = clock_.now();
  if (!is_plain(name)) return fail(Error(ErrorCode::invalid_argument, std::string(kPlain)).at("$.name"));
  if (!is_plain(principal)) return fail(Error(ErrorCode::invalid_argument, std::string(kPlain)).at("$.principal"));
  if (std::ranges::find(kOwnActors, principal) != kOwnActors.end()) {
    return fail(Error(ErrorCode::invalid_argument, fmt::format("events name a part of heliostat '{}'; choose another", principal))
                    .at("$.principal"));
  }
  if (expires && *expires <= now) return fail(Error(ErrorCode::invalid_argument, "the end lies in the past").at("$.expires"));
  HELIO_CHECK_OK(check_scope(scope, role));
  NewToken made;
  made.secret = new_secret(rng_);
  made.token.id = TokenId("t-" + random_base32(rng_, 16));
  made.token.name = std::move(name);
  made.token.principal = std::move(principal);
  made.token.role = role;
  made.token.workspaces = std::move(scope.workspaces);
  made.token.hash = sha256_hex(made.secret);
  made.token.created = now;
  made.token.expires = expires;
  std::string message = fmt::format("token '{}' of {}", made.token.name, made.token.principal);
  if (!made.token.workspaces.empty()) message += fmt::format(" for {}", fmt::join(made.token.workspaces, ", "));
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) { return tx.put(made.token, event_of(actor, now, "token.created", message)); }));
  return made;
}

Result<std::vector<model::Token>> Tokens::list() {
  HELIO_TRY(page, store::list<model::Token>(store_));
  return std::move(page.items);
}

Result<void> Tokens::revoke(std::string_view actor, const TokenId& id) {
  if (id.value == kAdmin) {
    return fail(ErrorCode::precondition_failed,
                "this token comes back with each start of the daemon; to change it, remove its file and start the daemon again");
  }
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(token, tx.get<model::Token>(id.value));
    return tx.remove<model::Token>(id.value, event_of(actor, clock_.now(), "token.revoked", fmt::format("token '{}'", token.name)));
  });
}

}  // namespace helio::auth
