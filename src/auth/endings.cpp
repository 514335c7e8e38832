#include "auth/endings.h"

#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace helio::auth {
namespace {

constexpr Timestamp kNever{std::numeric_limits<std::int64_t>::max()};
constexpr Duration kSoonest{1'000};  ///< of a timer: clocks differ by less
constexpr Duration kRetry = std::chrono::seconds(1);

/// What must last.
struct Grant {
  TokenId token;
  SessionId session;  ///< empty: none
};

struct Open {
  Grant grant;
  std::function<void()> ended;
};

}  // namespace

struct Endings::Shared : std::enable_shared_from_this<Shared> {
  Shared(store::Store& store_in, const Clock& clock_in, Executor& executor_in, Tokens& tokens_in, Sessions& sessions_in)
      : store(store_in), clock(clock_in), executor(executor_in), tokens(tokens_in), sessions(sessions_in) {}

  store::Store& store;
  const Clock& clock;
  Executor& executor;
  Tokens& tokens;
  Sessions& sessions;
  std::atomic<std::size_t> count{0};     ///< of `open`
  std::atomic<std::int64_t> changed{0};  ///< last change of tokens or sessions that was looked at
  std::atomic<bool> posted{false};
  std::mutex mutex;  ///< of what follows
  std::map<std::uint64_t, Open> open;
  std::uint64_t last_id = 0;
  std::optional<Timestamp> due;  ///< of `timer`
  Executor::TimerId timer = 0;

  /// After a commit, on its thread.
  void committed() {
    if (count.load() == 0) return;  // who comes now asks for itself
    const std::int64_t now =
        std::max(store.changed(model::KindOf<model::Token>::name), store.changed(model::KindOf<model::BrowserSession>::name));
    if (changed.exchange(now) != now) ask();
  }

  /// Has everything looked at, soon.
  void ask() {
    if (posted.exchange(true)) return;
    executor.post([self = shared_from_this()] { self->look(); });
  }

  /// Until when it is good; nothing: it has ended.
  Result<std::optional<Timestamp>> end_of(const Grant& grant) {
    HELIO_TRY(who, tokens.holder(grant.token));
    if (!who) return std::optional<Timestamp>{};
    const Timestamp end = who->expires.value_or(kNever);
    if (grant.session.empty()) return std::optional(end);
    HELIO_TRY(session_end, sessions.end_of(grant.session));
    if (!session_end) return std::optional<Timestamp>{};
    return std::optional(std::min(end, *session_end));
  }
  /// The same from memory; nothing: not known.
  std::optional<Timestamp> known_end_of(const Grant& grant) {
    const std::optional<Identity> who = tokens.known_holder(grant.token);
    if (!who) return std::nullopt;
    const Timestamp end = who->expires.value_or(kNever);
    if (grant.session.empty()) return end;
    const std::optional<Timestamp> session_end = sessions.known_end_of(grant.session);
    return session_end ? std::optional(std::min(end, *session_end)) : std::nullopt;
  }

  /// Under the mutex.
  void arm(Timestamp at) {
    if (at == kNever || (due && *due <= at)) return;
    if (due) executor.cancel(timer);
    due = at;
    timer = executor.after(std::max(at - clock.now(), kSoonest), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      {
        const std::scoped_lock lock(self->mutex);
        self->due.reset();
      }
      self->look();
    });
  }

  void look() {
    posted = false;
    std::vector<std::pair<std::uint64_t, Grant>> now;
    {
      const std::scoped_lock lock(mutex);
      now.reserve(open.size());
      for (const auto& [id, what] : open) now.emplace_back(id, what.grant);
    }
    std::vector<std::uint64_t> ended;
    Timestamp next = kNever;
    for (const auto& [id, grant] : now) {
      const auto end = end_of(grant);
      if (!end) {
        log::warn("whether token {} is still good cannot be told: {}", grant.token.value, end.error().text());
        next = std::min(next, clock.now() + kRetry);
      } else if (!*end) {
        ended.push_back(id);
      } else {
        next = std::min(next, **end);
      }
    }
    std::vector<std::function<void()>> calls;
    {
      const std::scoped_lock lock(mutex);
      for (const std::uint64_t id : ended) {
        const auto found = open.find(id);
        if (found == open.end()) continue;  // over by itself meanwhile
        calls.push_back(std::move(found->second.ended));
        open.erase(found);
      }
      count = open.size();
      arm(next);
    }
    for (const auto& call : calls) call();
  }
};

namespace {

class WatchImpl final : public Endings::Watch {
 public:
  explicit WatchImpl(std::function<void()> forget) : forget_(std::move(forget)) {}
  ~WatchImpl() override { forget_(); }
  WatchImpl(const WatchImpl&) = delete;
  WatchImpl& operator=(const WatchImpl&) = delete;

 private:
  std::function<void()> forget_;
};

}  // namespace

Endings::Endings(store::Store& store, const Clock& clock, Executor& executor, Tokens& tokens, Sessions& sessions)
    : shared_(std::make_shared<Shared>(store, clock, executor, tokens, sessions)) {
  subscription_ = store.subscribe([shared = shared_](std::int64_t) { shared->committed(); });
}

Endings::~Endings() = default;

std::unique_ptr<Endings::Watch> Endings::watch(const TokenId& token, const SessionId& session, std::function<void()> ended) {
  const Grant grant{token, session};
  std::uint64_t id = 0;
  {
    const std::scoped_lock lock(shared_->mutex);
    id = ++shared_->last_id;
    shared_->open.emplace(id, Open{grant, std::move(ended)});
    shared_->count = shared_->open.size();
  }
  // Only now: an end that comes after this is heard of, one that came before it is seen here.
  const auto end = shared_->known_end_of(grant);
  if (!end) {
    shared_->ask();
  } else if (*end != kNever) {
    const std::scoped_lock lock(shared_->mutex);
    shared_->arm(*end);
  }
  return std::make_unique<WatchImpl>([shared = shared_, id] {
    const std::scoped_lock lock(shared->mutex);
    shared->open.erase(id);
    shared->count = shared->open.size();
  });
}

}  // namespace helio::auth
