#pragma once
// The default store: one SQLite file in WAL mode with synchronous=FULL. One caller at a time runs the functions that have
// queued, each in its own savepoint, and commits them with one fsync; reads run on a small pool of connections, each on its own snapshot.

#include "base/clock.h"
#include "base/error.h"
#include "store/store.h"

#include <memory>
#include <string>

namespace helio::store {

/// A database in memory that outlives the stores opened on it: a simulated daemon crashes and opens it again. Single thread.
class MemoryDb {
 public:
  virtual ~MemoryDb() = default;
};
Result<std::shared_ptr<MemoryDb>> make_memory_db();

struct SqliteOptions {
  std::string path;  ///< file (made with mode 0600), or ":memory:" for one that ends with the store
  const Clock& clock;
  /// No threads: a write runs on its caller and listeners are called before it returns. One thread at a time. For simulation and tests.
  bool inline_mode = false;
  std::shared_ptr<MemoryDb> memory;  ///< instead of `path`; needs inline_mode, and one open store at a time
};

/// Opens or makes the database and brings its schema up to date. The caller holds the data folder's lock (store/lock_file.h).
/// Errors: precondition_failed (written by a newer heliostat, or a migration's text was changed), unavailable (locked by another
/// process), internal (damaged), those of the file system.
Result<std::unique_ptr<Store>> open_sqlite(const SqliteOptions& options);

}  // namespace helio::store
