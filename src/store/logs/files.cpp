#include "store/logs/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace helio::store::logs {
namespace {

std::unexpected<Error> failed(std::string_view doing) { return fail(system_error(errno, doing)); }

}  // namespace

File::~File() { ::close(fd_); }

Result<std::shared_ptr<File>> File::open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return failed("open " + path);
  return std::make_shared<File>(fd);
}

Result<std::int64_t> File::size() const {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return failed("stat");
  return static_cast<std::int64_t>(info.st_size);
}

Result<std::string> File::read(std::int64_t offset, std::size_t n) const {
  std::string out;
  bool ok = true;
  // libstdc++ 12 calls this with what it has allocated, which may be more than was asked for.
  out.resize_and_overwrite(n, [&](char* data, std::size_t /*allocated*/) {
    std::size_t done = 0;
    while (done < n) {
      const ssize_t got = ::pread(fd_, data + done, n - done, static_cast<off_t>(offset) + static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) ok = false;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  });
  if (!ok) return failed("read");
  return out;
}

Result<void> File::write(std::int64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += n;
  }
  return {};
}

Result<void> File::truncate(std::int64_t size) const {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return failed("truncate");
  return {};
}

Result<void> File::sync() const {
  if (::fdatasync(fd_) != 0) return failed("sync");
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view content) {
  const std::string fresh = path + ".tmp";
  HELIO_TRY(file, File::open(fresh, O_WRONLY | O_CREAT | O_TRUNC));
  if (auto written = file->write(0, content); !written) {
    ::unlink(fresh.c_str());
    return fail(std::move(written).error().during(fresh));
  }
  return rename_path(fresh, path);
}

Result<std::string> read_file(const std::string& path) {
  HELIO_TRY(file, File::open(path, O_RDONLY));
  HELIO_TRY(size, file->size());
  return file->read(0, static_cast<std::size_t>(size));
}

Result<void> sync_path(const std::string& path) {
  HELIO_TRY(file, File::open(path, O_RDONLY));
  return file->sync();
}

Result<void> unlink_path(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("remove " + path);
  return {};
}

Result<void> rename_path(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename " + from);
  return {};
}

Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("make folder " + path);
  return {};
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<std::vector<std::string>> names_in(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return std::vector<std::string>{};
    return failed("list " + path);
  }
  std::vector<std::string> names;
  // Used by one thread at a time: a DIR of its own is what readdir asks for.
  while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(dir);
  std::ranges::sort(names);
  return names;
}

std::int64_t size_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return static_cast<std::int64_t>(info.st_size);
}

}  // namespace helio::store::logs
