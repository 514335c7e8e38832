#include "service/feed.h"

#include "base/log.h"
#include "service/scope.h"

#include <algorithm>
#include <utility>

namespace helio::service {
namespace {
constexpr int kEventsAtOnce = 500;
}  // namespace

struct Feed::Shared : std::enable_shared_from_this<Feed::Shared> {
  Shared(store::Store& store_in, Executor& executor_in) : store(store_in), executor(executor_in) {}

  store::Store& store;
  Executor& executor;
  std::atomic<bool> posted{false};
  std::atomic<std::size_t> waiting{0};
  std::mutex mutex;
  std::multimap<std::string, std::shared_ptr<std::function<void()>>> watches;  // by job; "": all
  std::int64_t seen = 0;                                                       // guarded by mutex

  void changed() {
    if (waiting.load() == 0 || posted.exchange(true)) return;
    executor.post([self = shared_from_this()] { self->dispatch(); });
  }

  /// Jobs that changed since the last call; false when that cannot be told.
  bool changed_jobs(std::int64_t since, std::vector<std::string>& jobs, std::int64_t& last) {
    last = since;
    for (bool more = true; more;) {
      store::EventQuery query;
      query.since = last;
      query.limit = kEventsAtOnce;
      query.names_only = true;
      auto read = store.read([&](store::ReadTx& tx) -> Result<void> {
        HELIO_TRY(events, tx.events(query));
        for (const store::Event& event : events) {
          last = event.revision;
          if (!event.job.empty()) jobs.push_back(event.job);
          if (event.kind == "job") jobs.push_back(event.id);
        }
        more = std::cmp_equal(events.size(), query.limit);
        return {};
      });
      if (!read) {
        log::debug("change feed: {}", read.error().text());
        last = store.revision();
        return false;
      }
    }
    std::ranges::sort(jobs);
    const auto doubled = std::ranges::unique(jobs);
    jobs.erase(doubled.begin(), doubled.end());
    return true;
  }

  void dispatch() {
    posted.store(false);
    std::int64_t since = 0;
    bool by_job = false;
    {
      const std::scoped_lock lock(mutex);
      since = seen;
      by_job = watches.count("") < watches.size();
    }
    std::vector<std::string> jobs;
    std::int64_t last = store.revision();
    const bool known = !by_job || changed_jobs(since, jobs, last);
    std::vector<std::shared_ptr<std::function<void()>>> wake;
    {
      const std::scoped_lock lock(mutex);
      seen = std::max(seen, last);
      const auto take = [&](auto range) {
        for (auto it = range.first; it != range.second; ++it) wake.push_back(it->second);
      };
      if (!known) {
        take(std::pair(watches.begin(), watches.end()));
      } else {
        take(watches.equal_range(""));
        for (const std::string& job : jobs) take(watches.equal_range(job));
      }
    }
    for (const auto& fn : wake) (*fn)();
  }
};

namespace {

class WatchImpl final : public Feed::Watch {
 public:
  explicit WatchImpl(std::function<void()> forget) : forget_(std::move(forget)) {}
  ~WatchImpl() override { forget_(); }
  WatchImpl(const WatchImpl&) = delete;
  WatchImpl& operator=(const WatchImpl&) = delete;

 private:
  std::function<void()> forget_;
};

}  // namespace

Feed::Feed(store::Store& store, Executor& executor)
    : shared_(std::make_shared<Shared>(store, executor)), store_(store), executor_(executor) {
  subscription_ = store.subscribe([shared = shared_](std::int64_t) { shared->changed(); });
}

Feed::~Feed() = default;

std::unique_ptr<Feed::Watch> Feed::watch(const std::string& job, std::function<void()> wake) {
  auto fn = std::make_shared<std::function<void()>>(std::move(wake));
  const std::scoped_lock lock(shared_->mutex);
  // Nobody has waited until now: what happened meanwhile is of no interest to anyone.
  if (shared_->watches.empty()) shared_->seen = store_.revision();
  shared_->watches.emplace(job, fn);
  shared_->waiting.store(shared_->watches.size());
  return std::make_unique<WatchImpl>([shared = shared_, job, fn] {
    const std::scoped_lock guard(shared->mutex);
    const auto range = shared->watches.equal_range(job);
    for (auto it = range.first; it != range.second; ++it) {
      if (it->second != fn) continue;
      shared->watches.erase(it);
      break;
    }
    shared->waiting.store(shared->watches.size());
  });
}

Result<std::vector<store::Event>> Feed::events(const store::EventQuery& query) {
  std::vector<store::Event> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(events, tx.events(query));
    out = std::move(events);
    return {};
  }));
  return out;
}

Result<std::vector<model::Host>> Feed::hosts() {
  HELIO_TRY(page, store::list<model::Host>(store_));
  return std::move(page.items);
}

Result<std::vector<model::Node>> Feed::nodes(const model::Scope& scope, bool all) {
  store::ListQuery query;
  if (!all) {
    for (int i = 0; i < static_cast<int>(model::NodeState::gone); ++i) {
      query.states.emplace_back(json::enum_name(static_cast<model::NodeState>(i)));
    }
  }
  std::vector<model::Node> out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(page, tx.list<model::Node>(query));
    for (model::Node& node : page.items) {
      HELIO_TRY(known, knows(tx, scope, node.job));
      if (known) out.push_back(std::move(node));
    }
    return {};
  }));
  return out;
}

Result<void> Feed::note(const Caller& caller, const NodeId& node, std::string_view type, const std::string& message, Timestamp now) {
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(row, tx.get<model::Node>(node.value));
    store::Event event;
    event.at = now;
    event.actor = caller.principal;
    event.type = type;
    event.message = message;
    event.job = row.job.value;
    return tx.put(row, std::move(event));
  });
}

Result<std::int64_t> Feed::count_jobs(const std::vector<model::JobState>& states) {
  store::ListQuery query;
  for (const model::JobState state : states) query.states.emplace_back(json::enum_name(state));
  std::int64_t count = 0;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.count_rows("job", query));
    count = found;
    return {};
  }));
  return count;
}

}  // namespace helio::service
