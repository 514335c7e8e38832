#pragma once
// File calls with Results, for the log store.

#include "base/error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace helio::store::logs {

/// An open descriptor. Shared, so that a reader goes on with a file that was meanwhile closed or unlinked by others.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// `flags` of open(2); O_CLOEXEC is added, new files get 0600.
  static Result<std::shared_ptr<File>> open(const std::string& path, int flags);

  [[nodiscard]] Result<std::int64_t> size() const;
  /// Fewer bytes than asked for only at the end of the file.
  [[nodiscard]] Result<std::string> read(std::int64_t offset, std::size_t n) const;
  /// All or an error; then the file may be longer than before.
  [[nodiscard]] Result<void> write(std::int64_t offset, std::string_view bytes) const;
  [[nodiscard]] Result<void> truncate(std::int64_t size) const;
  /// fdatasync.
  [[nodiscard]] Result<void> sync() const;

 private:
  int fd_;
};

/// Replaces the file as a whole (new file, then rename). Durable after sync_path() of it and of its folder.
Result<void> replace_file(const std::string& path, std::string_view content);
Result<std::string> read_file(const std::string& path);
/// fsync of a file or folder by name.
Result<void> sync_path(const std::string& path);
/// Removing what is not there is fine.
Result<void> unlink_path(const std::string& path);
Result<void> rename_path(const std::string& from, const std::string& to);
/// mkdir with 0700; an existing one is fine.
Result<void> make_folder(const std::string& path);
bool exists(const std::string& path);
/// Names in a folder, sorted, without "." and ".."; empty when there is no such folder.
Result<std::vector<std::string>> names_in(const std::string& path);
/// Size of a regular file; 0 if absent.
std::int64_t size_of(const std::string& path);

}  // namespace helio::store::logs
