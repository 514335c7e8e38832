#pragma once
// A VFS for the connection that writes: what a commit adds to the write-ahead log goes to the kernel in one piece.
//
// SQLite writes each frame of the log with two calls, and syncs it before it tells readers of the frames. So the writes may wait in
// memory until the sync, or until something else is asked of the file.

namespace helio::store::sqlite {

/// The name of the VFS for sqlite3_open_v2(); registered with the first call. Null when SQLite has no memory for it: use the default then.
/// Any thread.
const char* gathering_vfs();

}  // namespace helio::store::sqlite
