#include "store/sql/sqlite/connection.h"

#include "base/check.h"
#include "store/sql/sqlite/wal_writes.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace helio::store::sqlite {
namespace {

// Distinct texts are few (list queries vary by how many states they name), so this bound is a backstop.
constexpr std::size_t kMaxCached = 128;
constexpr int kBusyTimeoutMs = 5000;

/// errno of the last failed call on the database file or its log; sqlite3_system_errno() reads errno when others have changed it.
bool out_of_space(sqlite3* db) {
  if (db == nullptr) return false;
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    int number = 0;
    if (sqlite3_file_control(db, "main", which, &file) != SQLITE_OK || file == nullptr || file->pMethods == nullptr) continue;
    if (file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number) != SQLITE_OK) continue;
    // A quota or a file size limit ends a write like a full disk does.
    if (number == ENOSPC || number == EDQUOT || number == EFBIG) return true;
  }
  return false;
}

ErrorCode code_of(int rc, sqlite3* db) {
  switch (rc & 0xff) {
    case SQLITE_FULL:
      return ErrorCode::storage_full;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::unavailable;
    case SQLITE_NOMEM:
      return ErrorCode::resource_exhausted;
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return ErrorCode::permission_denied;
    case SQLITE_IOERR:
      return out_of_space(db) ? ErrorCode::storage_full : ErrorCode::internal;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_),
      statement_(std::exchange(other.statement_, nullptr)),
      cached_(other.cached_),
      next_(other.next_),
      bind_error_(other.bind_error_) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  if (!cached_) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  const auto found = db_->cache_.find(std::string_view(sqlite3_sql(statement_)));
  if (found != db_->cache_.end()) found->second.lent = false;
}

Statement& Statement::bind(std::int64_t value) {
  bind_error_ |= sqlite3_bind_int64(statement_, next_++, value);
  return *this;
}
Statement& Statement::bind(std::string_view text) {
  // A null pointer would bind NULL, and an empty view may hold one.
  bind_error_ |= sqlite3_bind_text64(statement_, next_++, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind_blob(std::string_view bytes) {
  bind_error_ |= sqlite3_bind_blob64(statement_, next_++, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}
Statement& Statement::bind_null() {
  bind_error_ |= sqlite3_bind_null(statement_, next_++);
  return *this;
}

Result<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) return fail(ErrorCode::internal, "store: parameter of '{}' does not fit", sqlite3_sql(statement_));
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return fail(db_->error(rc, "store"));
}

Result<void> Statement::run() {
  HELIO_TRY(row, step());
  if (row) return fail(ErrorCode::internal, "store: unexpected row from '{}'", sqlite3_sql(statement_));
  return {};
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
std::string_view Statement::view(int column) const {
  // blob() before bytes(), as the documentation of sqlite3_column_bytes asks; text columns are UTF-8 as they are.
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionOptions& options) {
  const bool memory = options.path == ":memory:";
  if (!memory && !options.read_only) {
    // SQLite would make it by umask; the journal files take over the mode of this one.
    const int fd = ::open(options.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return fail(system_error(errno, "open " + options.path));
    ::close(fd);
  }
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | (memory ? SQLITE_OPEN_CREATE : 0);
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(options.path.c_str(), &raw, flags, memory || options.read_only ? nullptr : gathering_vfs());
  std::unique_ptr<Connection> connection(new Connection(raw));
  if (rc != SQLITE_OK) return fail(connection->error(rc, "open " + options.path));
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  std::string pragmas = fmt::format("PRAGMA temp_store=MEMORY; PRAGMA cache_size=-{};", options.cache_kib);
  if (!memory && !options.read_only) {
    pragmas += "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA journal_size_limit=67108864;";
  }
  if (options.read_only) pragmas += "PRAGMA query_only=ON;";
  if (auto set = connection->script(pragmas); !set) return fail(std::move(set).error().during("open " + options.path));
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, cached] : cache_) {
    HELIO_DCHECK(!cached.lent, "a statement outlives its connection");
    sqlite3_finalize(cached.statement);
  }
  sqlite3_close_v2(db_);
}

Result<Statement> Connection::prepare(std::string_view sql) {
  auto found = cache_.find(sql);
  if (found != cache_.end() && !found->second.lent) {
    found->second.lent = true;
    return Statement(this, found->second.statement, true);
  }
  const bool cacheable = found == cache_.end() && cache_.size() < kMaxCached;
  sqlite3_stmt* statement = nullptr;
  const int rc =
      sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), cacheable ? SQLITE_PREPARE_PERSISTENT : 0, &statement, nullptr);
  if (rc != SQLITE_OK) return fail(error(rc, fmt::format("store: compile '{}'", sql)));
  if (cacheable) cache_.emplace(std::string(sql), Cached{statement, true});
  return Statement(this, statement, cacheable);
}

Result<void> Connection::run(std::string_view sql) {
  HELIO_TRY(statement, prepare(sql));
  return statement.run();
}

Result<void> Connection::script(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return fail(error(rc, "store"));
  return {};
}

bool Connection::idle() const { return sqlite3_get_autocommit(db_) != 0; }

void Connection::rollback() {
  // An error of ROLLBACK itself means that SQLite has already rolled back.
  if (!idle()) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

std::int64_t Connection::changes() const { return sqlite3_changes64(db_); }

Error Connection::error(int rc, std::string_view doing) const {
  const ErrorCode code = code_of(rc, db_);
  const char* text = db_ == nullptr ? sqlite3_errstr(rc) : sqlite3_errmsg(db_);
  if (code == ErrorCode::storage_full) return Error(code, fmt::format("{}: no space left for the database ({})", doing, text));
  return Error(code, fmt::format("{}: {} (sqlite {})", doing, text, rc));
}

}  // namespace helio::store::sqlite
