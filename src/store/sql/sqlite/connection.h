#pragma once
// The door to the sqlite3 C API: a connection with a cache of prepared statements, and statements that reset themselves.

#include "base/error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace helio::store::sqlite {

class Connection;

/// A prepared statement on loan from its connection. Bindings are numbered from 1, columns from 0. Bound bytes are copied.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  /// Binds the next parameter.
  Statement& bind(std::int64_t value);
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::string_view text);
  Statement& bind_blob(std::string_view bytes);
  Statement& bind_null();

  /// True: there is a row to read. False: done.
  Result<bool> step();
  /// For statements without rows.
  Result<void> run();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string_view view(int column) const;  ///< until the next step
  [[nodiscard]] std::string text(int column) const { return std::string(view(column)); }
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Connection;
  Statement(Connection* connection, sqlite3_stmt* statement, bool cached) : db_(connection), statement_(statement), cached_(cached) {}

  Connection* db_;
  sqlite3_stmt* statement_;
  bool cached_;
  int next_ = 1;
  int bind_error_ = 0;
};

struct ConnectionOptions {
  std::string path;
  bool read_only = false;
  int cache_kib = 2048;
};

/// One thread at a time.
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Takes the statement from the cache or compiles it.
  Result<Statement> prepare(std::string_view sql);
  /// Runs one cached statement without parameters and rows.
  Result<void> run(std::string_view sql);
  /// Runs a text of several statements, not cached.
  Result<void> script(const std::string& sql);
  /// No transaction is open: none was begun, or an error ended it.
  [[nodiscard]] bool idle() const;
  /// Ends an open transaction, whatever state it is in.
  void rollback();
  /// Rows changed by the last statement.
  [[nodiscard]] std::int64_t changes() const;

 private:
  friend class Statement;
  explicit Connection(sqlite3* db) : db_(db) {}
  [[nodiscard]] Error error(int rc, std::string_view doing) const;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct Cached {
    sqlite3_stmt* statement;
    bool lent;
  };
  sqlite3* db_;
  std::unordered_map<std::string, Cached, Hash, std::equal_to<>> cache_;
};

}  // namespace helio::store::sqlite
