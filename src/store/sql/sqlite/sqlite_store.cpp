#include "store/sql/sqlite/sqlite_store.h"

#include "store/listeners.h"
#include "store/sql/sqlite/connection.h"
#include "store/sql/sqlite/migrations.h"
#include "store/sql/sqlite/tables.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace helio::store {
namespace {

using sqlite::Connection;
using sqlite::SqliteReadTx;
using sqlite::SqliteWriteTx;

// A commit carries at most so many functions, which bounds how long the first of them waits for the last.
constexpr std::size_t kMaxBatch = 256;
// Connections kept for the next readers; more than that many at once open their own.
constexpr std::size_t kIdleReaders = 4;
constexpr int kWriterCacheKib = 512;
constexpr int kReaderCacheKib = 128;

class SharedConnection final : public MemoryDb {
 public:
  explicit SharedConnection(std::unique_ptr<Connection> connection) : db(std::move(connection)) {}
  std::unique_ptr<Connection> db;
};

/// One queued write. Shared, because the waker may still touch it when the caller has returned. `done` is guarded by the queue's mutex.
struct Request {
  Store::WriteFn fn;
  std::optional<Lease> lease;
  Result<void> result;
  std::exception_ptr thrown;
  std::condition_variable changed;
  bool done = false;
};
using RequestPtr = std::shared_ptr<Request>;

class SubscriptionHandle final : public Store::Subscription {
 public:
  explicit SubscriptionHandle(std::unique_ptr<Listeners<std::int64_t>::Handle> handle) : handle_(std::move(handle)) {}

 private:
  std::unique_ptr<Listeners<std::int64_t>::Handle> handle_;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(const SqliteOptions& options, std::shared_ptr<SharedConnection> writer, std::int64_t revision)
      : path_(options.path),
        clock_(options.clock),
        inline_(options.inline_mode),
        single_(options.inline_mode || options.path == ":memory:"),
        writer_(std::move(writer)),
        given_(revision),
        opened_at_(revision),
        revision_(revision) {}
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  Result<void> write(WriteFn fn) override { return submit(std::move(fn), std::nullopt); }
  Result<void> write(const Lease& lease, WriteFn fn) override { return submit(std::move(fn), lease); }
  Result<void> read(ReadFn fn) override;
  Result<Lease> take_lease(std::string_view holder) override {
    Lease lease;
    HELIO_CHECK_OK(write([&](WriteTx& tx) -> Result<void> {
      HELIO_TRY(taken, static_cast<SqliteWriteTx&>(tx).take_lease(holder));
      lease = taken;
      return {};
    }));
    return lease;
  }
  [[nodiscard]] std::int64_t revision() const override { return revision_.load(std::memory_order_acquire); }
  [[nodiscard]] std::int64_t changed(std::string_view kind) const override {
    const std::lock_guard lock(changed_mutex_);
    const auto found = changed_.find(kind);
    return found == changed_.end() ? opened_at_ : found->second;
  }
  std::unique_ptr<Subscription> subscribe(Listener listener) override {
    return std::make_unique<SubscriptionHandle>(listeners_.add(std::move(listener)));
  }

 private:
  Result<void> submit(WriteFn fn, std::optional<Lease> lease);
  void commit_together(const RequestPtr& request);
  void commit_all(std::span<const RequestPtr> batch);
  std::size_t commit_some(std::span<const RequestPtr> batch);
  void run_one(Request& request);
  Result<void> read_on(Connection& db, ReadFn& fn);
  Result<std::unique_ptr<Connection>> take_reader();
  /// This thread is inside a write function of this store.
  [[nodiscard]] bool writing() const { return writer_id_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  const std::string path_;
  const Clock& clock_;
  const bool inline_;
  const bool single_;  ///< reads share the writer's connection
  std::shared_ptr<SharedConnection> writer_;
  std::recursive_mutex single_mutex_;  ///< of the connection, when it is shared
  int read_depth_ = 0;                 ///< nested reads on the shared connection

  std::mutex readers_mutex_;
  std::vector<std::unique_ptr<Connection>> readers_;

  std::mutex queue_mutex_;
  std::deque<RequestPtr> queue_;
  bool committing_ = false;  ///< one of the callers does it for all

  std::int64_t given_;                        ///< writer's: last revision given
  std::set<std::string, std::less<>> kinds_;  ///< writer's: changed by the transaction
  const std::int64_t opened_at_;
  mutable std::mutex changed_mutex_;
  std::map<std::string, std::int64_t, std::less<>> changed_;  ///< by kind
  std::atomic<std::int64_t> revision_;
  std::atomic<std::thread::id> writer_id_;
  Listeners<std::int64_t> listeners_;
};

Result<void> SqliteStore::submit(WriteFn fn, std::optional<Lease> lease) {
  if (writing()) return fail(ErrorCode::internal, "store: a write inside a write function");
  auto request = std::make_shared<Request>();
  request->fn = std::move(fn);
  request->lease = lease;
  if (inline_) {
    if (read_depth_ > 0) return fail(ErrorCode::internal, "store: a write inside a read function");
    const std::int64_t before = revision();
    commit_all({&request, 1});
    if (revision() != before) listeners_.call(revision());
  } else {
    commit_together(request);
  }
  if (request->thrown) std::rethrow_exception(request->thrown);
  return std::move(request->result);
}

/// Who finds nobody committing does it, for itself and for all that have queued meanwhile; then the first of those who came during the
/// commit goes on. A lone writer so pays for no hop to another thread.
void SqliteStore::commit_together(const RequestPtr& request) {
  std::unique_lock lock(queue_mutex_);
  queue_.push_back(request);
  request->changed.wait(lock, [&] { return request->done || !committing_; });
  while (!request->done) {
    committing_ = true;
    std::vector<RequestPtr> batch;
    while (!queue_.empty() && batch.size() < kMaxBatch) {
      batch.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    lock.unlock();
    const std::int64_t before = revision();
    commit_all(batch);
    const bool changed = revision() != before;
    lock.lock();
    for (const RequestPtr& each : batch) {
      each->done = true;
      if (each != request) each->changed.notify_one();
    }
    committing_ = false;
    if (request->done && !queue_.empty()) queue_.front()->changed.notify_one();
    lock.unlock();
    if (changed) listeners_.call(revision());
    lock.lock();
  }
}

void SqliteStore::commit_all(std::span<const RequestPtr> batch) {
  std::unique_lock<std::recursive_mutex> lock(single_mutex_, std::defer_lock);
  if (single_) lock.lock();
  writer_id_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!batch.empty()) batch = batch.subspan(commit_some(batch));
  writer_id_.store({}, std::memory_order_relaxed);
}

/// Runs a transaction with functions from the front of `batch`; returns how many have their result.
std::size_t SqliteStore::commit_some(std::span<const RequestPtr> batch) {
  Connection& db = *writer_->db;
  const std::int64_t given_before = given_;
  kinds_.clear();
  const bool alone = batch.size() == 1;
  std::size_t ran = 0;
  auto failed = [&](const Error& error) {
    db.rollback();
    given_ = given_before;
    for (const RequestPtr& request : batch.first(ran)) {
      if (request->result) request->result = fail(error);
    }
    return ran;
  };
  if (const auto begun = db.run("BEGIN IMMEDIATE"); !begun) {
    ran = batch.size();
    return failed(begun.error());
  }
  for (const RequestPtr& request : batch) {
    ++ran;
    const std::int64_t given = given_;
    if (!alone) {
      if (const auto made = db.run("SAVEPOINT one"); !made) return failed(made.error());
    }
    run_one(*request);
    if (db.idle()) {
      // Some errors, a full disk among them, end the whole transaction: what ran before in it is gone too.
      return failed(request->result ? Error(ErrorCode::internal, "store: the transaction ended early") : request->result.error());
    }
    if (alone && !request->result) return failed(request->result.error());
    if (!alone) {
      if (!request->result) {
        given_ = given;
        if (const auto back = db.run("ROLLBACK TO one"); !back) return failed(back.error());
      }
      if (const auto released = db.run("RELEASE one"); !released) return failed(released.error());
    }
  }
  if (const auto committed = db.run("COMMIT"); !committed) return failed(committed.error());
  {
    const std::lock_guard lock(changed_mutex_);
    for (const std::string& kind : kinds_) changed_[kind] = given_;
  }
  revision_.store(given_, std::memory_order_release);
  return ran;
}

void SqliteStore::run_one(Request& request) {
  SqliteWriteTx tx(*writer_->db, clock_, given_, kinds_);
  try {
    if (request.lease) request.result = tx.check_lease(*request.lease);
    if (request.result) request.result = request.fn(tx);
  } catch (...) {
    // Goes on at the caller, as if the function had run there. Also what simulation's crashes do.
    request.thrown = std::current_exception();
    request.result = fail(ErrorCode::internal, "store: the write function threw");
  }
  if (request.result && tx.broken()) request.result = fail(*tx.broken());
  // What it holds may live on the caller's stack, which goes away once the caller is woken.
  request.fn = nullptr;
}

Result<void> SqliteStore::read(ReadFn fn) {
  if (writing()) return fail(ErrorCode::internal, "store: a read inside a write function; use its transaction");
  if (single_) {
    const std::lock_guard lock(single_mutex_);
    if (read_depth_ > 0) {
      SqliteReadTx tx(*writer_->db, clock_);
      return fn(tx);
    }
    return read_on(*writer_->db, fn);
  }
  HELIO_TRY(reader, take_reader());
  auto result = read_on(*reader, fn);
  const std::lock_guard lock(readers_mutex_);
  if (readers_.size() < kIdleReaders && reader->idle()) readers_.push_back(std::move(reader));
  return result;
}

Result<void> SqliteStore::read_on(Connection& db, ReadFn& fn) {
  HELIO_CHECK_OK(db.run("BEGIN"));
  struct End {
    Connection& db;
    int* depth;
    ~End() {
      if (depth != nullptr) --*depth;
      if (const auto ended = db.run("COMMIT"); !ended) db.rollback();
    }
  };
  const End end{db, single_ ? &read_depth_ : nullptr};
  if (single_) ++read_depth_;
  SqliteReadTx tx(db, clock_);
  return fn(tx);
}

Result<std::unique_ptr<Connection>> SqliteStore::take_reader() {
  {
    const std::lock_guard lock(readers_mutex_);
    if (!readers_.empty()) {
      auto reader = std::move(readers_.back());
      readers_.pop_back();
      return reader;
    }
  }
  return Connection::open({.path = path_, .read_only = true, .cache_kib = kReaderCacheKib});
}

}  // namespace

Result<std::shared_ptr<MemoryDb>> make_memory_db() {
  HELIO_TRY(connection, Connection::open({.path = ":memory:"}));
  return std::make_shared<SharedConnection>(std::move(connection));
}

Result<std::unique_ptr<Store>> open_sqlite(const SqliteOptions& options) {
  std::shared_ptr<SharedConnection> writer;
  if (options.memory) {
    if (!options.inline_mode) return fail(ErrorCode::invalid_argument, "a shared memory database needs inline mode");
    writer = std::dynamic_pointer_cast<SharedConnection>(options.memory);
    if (!writer) return fail(ErrorCode::invalid_argument, "a shared memory database comes from make_memory_db()");
    // A crash may have been thrown out of a transaction.
    writer->db->rollback();
  } else {
    HELIO_TRY(connection, Connection::open({.path = options.path, .cache_kib = kWriterCacheKib}));
    writer = std::make_shared<SharedConnection>(std::move(connection));
  }
  auto migrated = sqlite::migrate(*writer->db, sqlite::migrations(), options.clock.now());
  if (!migrated) return fail(std::move(migrated).error().during("open store " + options.path));
  HELIO_TRY(revision, sqlite::last_revision(*writer->db));
  return std::make_unique<SqliteStore>(options, std::move(writer), revision);
}

}  // namespace helio::store
