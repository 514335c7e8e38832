#include "store/sql/sqlite/wal_writes.h"

#include <sqlite3.h>

#include <cstddef>
#include <new>
#include <vector>

namespace helio::store::sqlite {
namespace {

constexpr const char* kName = "heliostat";
/// SQLite's own file takes the length of a write modulo 128 KiB, and for a full disk what is missing then.
constexpr std::size_t kMostGathered = std::size_t{64} << 10U;

/// The default VFS's file lies behind this in the same memory, as SQLite gives it.
struct File {
  sqlite3_file base;
  std::vector<unsigned char> gathered;
  sqlite3_int64 start = 0;  ///< where `gathered` belongs
};
// The memory behind must be aligned like the start of it.
constexpr std::size_t kFileSize = (sizeof(File) + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);

File& file_of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }  // NOLINT: SQLite's way of inheritance
sqlite3_file* inner_of(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<unsigned char*>(file) + kFileSize);  // NOLINT: see File
}

int flush(sqlite3_file* file) {
  File& mine = file_of(file);
  if (mine.gathered.empty()) return SQLITE_OK;
  sqlite3_file* inner = inner_of(file);
  const int rc = inner->pMethods->xWrite(inner, mine.gathered.data(), static_cast<int>(mine.gathered.size()), mine.start);
  // After an error too: the transaction is over then, and the next one writes at the same place.
  mine.gathered.clear();
  return rc;
}

int on_close(sqlite3_file* file) {
  const int flushed = flush(file);
  sqlite3_file* inner = inner_of(file);
  const int closed = inner->pMethods->xClose(inner);
  file_of(file).~File();
  return flushed != SQLITE_OK ? flushed : closed;
}
int on_read(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  if (const int rc = flush(file); rc != SQLITE_OK) return rc;
  return inner_of(file)->pMethods->xRead(inner_of(file), out, amount, offset);
}
int on_write(sqlite3_file* file, const void* data, int amount, sqlite3_int64 offset) {
  File& mine = file_of(file);
  const auto size = static_cast<std::size_t>(amount);
  const bool follows = !mine.gathered.empty() && offset == mine.start + static_cast<sqlite3_int64>(mine.gathered.size());
  if (!follows || mine.gathered.size() + size > kMostGathered) {
    if (const int rc = flush(file); rc != SQLITE_OK) return rc;
    mine.start = offset;
  }
  const auto* bytes = static_cast<const unsigned char*>(data);
  try {
    mine.gathered.insert(mine.gathered.end(), bytes, bytes + size);
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  }
  return SQLITE_OK;
}
int on_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int rc = flush(file); rc != SQLITE_OK) return rc;
  return inner_of(file)->pMethods->xTruncate(inner_of(file), size);
}
int on_sync(sqlite3_file* file, int flags) {
  if (const int rc = flush(file); rc != SQLITE_OK) return rc;
  return inner_of(file)->pMethods->xSync(inner_of(file), flags);
}
int on_file_size(sqlite3_file* file, sqlite3_int64* size) {
  if (const int rc = flush(file); rc != SQLITE_OK) return rc;
  return inner_of(file)->pMethods->xFileSize(inner_of(file), size);
}
int on_lock(sqlite3_file* file, int level) { return inner_of(file)->pMethods->xLock(inner_of(file), level); }
int on_unlock(sqlite3_file* file, int level) { return inner_of(file)->pMethods->xUnlock(inner_of(file), level); }
int on_check_lock(sqlite3_file* file, int* out) { return inner_of(file)->pMethods->xCheckReservedLock(inner_of(file), out); }
int on_control(sqlite3_file* file, int what, void* arg) { return inner_of(file)->pMethods->xFileControl(inner_of(file), what, arg); }
int on_sector_size(sqlite3_file* file) { return inner_of(file)->pMethods->xSectorSize(inner_of(file)); }
int on_characteristics(sqlite3_file* file) { return inner_of(file)->pMethods->xDeviceCharacteristics(inner_of(file)); }

const sqlite3_io_methods kMethods{.iVersion = 1,
                                  .xClose = on_close,
                                  .xRead = on_read,
                                  .xWrite = on_write,
                                  .xTruncate = on_truncate,
                                  .xSync = on_sync,
                                  .xFileSize = on_file_size,
                                  .xLock = on_lock,
                                  .xUnlock = on_unlock,
                                  .xCheckReservedLock = on_check_lock,
                                  .xFileControl = on_control,
                                  .xSectorSize = on_sector_size,
                                  .xDeviceCharacteristics = on_characteristics};

int on_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* inner_vfs = static_cast<sqlite3_vfs*>(vfs->pAppData);
  if ((flags & SQLITE_OPEN_WAL) == 0) return inner_vfs->xOpen(inner_vfs, name, file, flags, out_flags);
  sqlite3_file* inner = inner_of(file);
  const int rc = inner_vfs->xOpen(inner_vfs, name, inner, flags, out_flags);
  file->pMethods = nullptr;
  if (rc != SQLITE_OK) {
    // SQLite would close a file with methods; this one is not to be.
    if (inner->pMethods != nullptr) inner->pMethods->xClose(inner);
    return rc;
  }
  new (file) File{};
  file->pMethods = &kMethods;
  return SQLITE_OK;
}

/// A call that has nothing to do with open files goes to the default VFS.
template <auto Member, class... Args>
auto pass(sqlite3_vfs* vfs, Args... args) {
  auto* inner = static_cast<sqlite3_vfs*>(vfs->pAppData);
  return (inner->*Member)(inner, args...);
}

const char* register_vfs() {
  sqlite3_vfs* inner = sqlite3_vfs_find(nullptr);
  if (inner == nullptr) return nullptr;
  static sqlite3_vfs vfs;
  vfs.iVersion = 1;
  vfs.szOsFile = static_cast<int>(kFileSize) + inner->szOsFile;
  vfs.mxPathname = inner->mxPathname;
  vfs.zName = kName;
  vfs.pAppData = inner;
  vfs.xOpen = on_open;
  vfs.xDelete = pass<&sqlite3_vfs::xDelete>;
  vfs.xAccess = pass<&sqlite3_vfs::xAccess>;
  vfs.xFullPathname = pass<&sqlite3_vfs::xFullPathname>;
  vfs.xDlOpen = pass<&sqlite3_vfs::xDlOpen>;
  vfs.xDlError = pass<&sqlite3_vfs::xDlError>;
  vfs.xDlSym = pass<&sqlite3_vfs::xDlSym>;
  vfs.xDlClose = pass<&sqlite3_vfs::xDlClose>;
  vfs.xRandomness = pass<&sqlite3_vfs::xRandomness>;
  vfs.xSleep = pass<&sqlite3_vfs::xSleep>;
  vfs.xCurrentTime = pass<&sqlite3_vfs::xCurrentTime>;
  vfs.xGetLastError = pass<&sqlite3_vfs::xGetLastError>;
  return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK ? kName : nullptr;
}

}  // namespace

const char* gathering_vfs() {
  static const char* const name = register_vfs();
  return name;
}

}  // namespace helio::store::sqlite
