#include "cli/package.h"

#include "base/hash.h"
#include "cli/ignore.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

/// 1980-01-01, the first time that a zip can hold: content alone decides the digest.
constexpr std::time_t kZipEpoch = 315532800;
constexpr int kDepthLimit = 64;
constexpr std::size_t kNamedFiles = 5;

struct FoundFile {
  std::string path;  ///< below the folder
  std::int64_t size = 0;
  bool executable = false;
};

class Walk {
 public:
  Walk(fs::path root, const PackOptions& options) : root_(std::move(root)) {
    rules_.add(".git", "");
    rules_.add("__pycache__/", "");
    for (const std::string& pattern : options.excludes) rules_.add(pattern, "");
  }

  Result<std::vector<FoundFile>> run() {
    HELIO_CHECK_OK(folder("", 0));
    std::ranges::sort(found_, {}, &FoundFile::path);
    return std::move(found_);
  }

 private:
  Result<void> folder(const std::string& below, int depth) {
    if (depth > kDepthLimit)
      return fail(ErrorCode::invalid_argument, "{} is more than {} folders deep (a link to itself?)", below, kDepthLimit);
    const fs::path here = below.empty() ? root_ : root_ / below;
    for (const char* name : {".gitignore", ".rayignore"}) {
      if (const auto text = read_file((here / name).string())) rules_.add_file(*text, below);
    }
    std::error_code error;
    for (fs::directory_iterator it(here, error), end; !error && it != end; it.increment(error)) {
      HELIO_CHECK_OK(entry(*it, below, depth));
    }
    if (error) return fail(system_error(error.value(), "read folder " + here.string()));
    return {};
  }

  Result<void> entry(const fs::directory_entry& item, const std::string& below, int depth) {
    const std::string path = below.empty() ? item.path().filename().string() : below + "/" + item.path().filename().string();
    std::error_code error;
    const bool is_link = item.is_symlink(error);
    struct stat info{};
    if (::stat(item.path().c_str(), &info) != 0) {
      if (rules_.ignored(path, false)) return {};
      if (is_link) return fail(ErrorCode::invalid_argument, "{} is a link to nothing; remove it or exclude it", item.path().string());
      return fail(system_error(errno, "read " + item.path().string()));
    }
    const bool is_folder = S_ISDIR(info.st_mode);
    if (rules_.ignored(path, is_folder)) return {};
    if (is_link) HELIO_CHECK_OK(check_link(item.path()));
    if (is_folder) return folder(path, depth + 1);
    if (S_ISREG(info.st_mode)) found_.push_back({path, info.st_size, (info.st_mode & S_IXUSR) != 0});
    return {};
  }

  Result<void> check_link(const fs::path& link) {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    const auto mismatch = std::mismatch(root_.begin(), root_.end(), target.begin(), target.end());
    if (error || mismatch.first != root_.end()) {
      return fail(ErrorCode::invalid_argument, "link {} leads out of {} to {}; copy the file or exclude the link", link.string(),
                  root_.string(), target.string());
    }
    return {};
  }

  fs::path root_;
  IgnoreRules rules_;
  std::vector<FoundFile> found_;
};

struct ArchiveDeleter {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct EntryDeleter {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

/// Where libarchive's output goes: the file, the digest, and the limit.
struct Sink {
  int fd = -1;
  Sha256 digest;
  std::int64_t written = 0;
  std::int64_t limit = 0;
  bool over = false;
  std::optional<Error> error;
};

la_ssize_t sink_write(archive* a, void* data, const void* bytes, std::size_t size) {
  Sink& sink = *static_cast<Sink*>(data);
  const std::string_view piece(static_cast<const char*>(bytes), size);
  sink.written += static_cast<std::int64_t>(size);
  if (sink.written > sink.limit) {
    sink.over = true;
    archive_set_error(a, EFBIG, "over the limit");
    return -1;
  }
  sink.digest.update(piece);
  if (auto ok = write_all(sink.fd, piece); !ok) {
    sink.error = std::move(ok).error();
    archive_set_error(a, EIO, "write failed");
    return -1;
  }
  return static_cast<la_ssize_t>(size);
}

Error too_large(std::vector<FoundFile> files, const std::string& folder, Bytes limit) {
  std::ranges::sort(files, std::greater<>{}, &FoundFile::size);
  std::string largest;
  for (std::size_t i = 0; i < std::min(files.size(), kNamedFiles); ++i) {
    largest += fmt::format("{}{} {}", i == 0 ? "" : ", ", files[i].path, format_bytes({files[i].size}));
  }
  return Error(ErrorCode::resource_exhausted,
               fmt::format("{} packs to more than {}; the largest files are {}; leave out what the job does not need with --exclude or a "
                           ".gitignore, or put it where the nodes can read it with --mount",
                           folder, format_bytes(limit), largest));
}

Error archive_failure(archive* a, const Sink& sink, std::string_view doing) {
  if (sink.error) return *sink.error;
  const char* text = archive_error_string(a);
  return Error(ErrorCode::internal, fmt::format("{}: {}", doing, text == nullptr ? "libarchive failed" : text));
}

Result<void> add_file(archive* a, const Sink& sink, const std::string& source, const std::string& name, bool executable) {
  const UniqueFd fd(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return fail(system_error(errno, "read " + source));
  const std::unique_ptr<archive_entry, EntryDeleter> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), executable ? 0755 : 0644);
  archive_entry_set_mtime(entry.get(), kZipEpoch, 0);
  archive_entry_set_size(entry.get(), info.st_size);
  if (archive_write_header(a, entry.get()) < ARCHIVE_WARN) return fail(archive_failure(a, sink, "pack " + source));
  char buffer[64 << 10];
  std::int64_t left = info.st_size;  // a file that grows meanwhile must not spoil its entry
  while (left > 0) {
    const ssize_t n = ::read(fd.get(), buffer, static_cast<std::size_t>(std::min<std::int64_t>(left, sizeof buffer)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + source));
    if (n == 0) return fail(ErrorCode::conflict, "{} became shorter while it was packed; try again", source);
    if (archive_write_data(a, buffer, static_cast<std::size_t>(n)) < 0) return fail(archive_failure(a, sink, "pack " + source));
    left -= n;
  }
  if (archive_write_finish_entry(a) < ARCHIVE_WARN) return fail(archive_failure(a, sink, "pack " + source));
  return {};
}

Result<void> write_zip(const fs::path& root, const std::vector<FoundFile>& files, const PackOptions& options, Sink& sink) {
  const std::unique_ptr<archive, ArchiveDeleter> a(archive_write_new());
  archive_write_set_format_zip(a.get());
  archive_write_set_options(a.get(), "zip:hdrcharset=UTF-8");
  archive_write_set_bytes_in_last_block(a.get(), 1);
  if (archive_write_open(a.get(), &sink, nullptr, sink_write, nullptr) != ARCHIVE_OK)
    return fail(archive_failure(a.get(), sink, "open zip"));
  for (const FoundFile& file : files) {
    const std::string name = options.parent.empty() ? file.path : options.parent + "/" + file.path;
    HELIO_CHECK_OK(add_file(a.get(), sink, (root / file.path).string(), name, file.executable));
  }
  if (archive_write_close(a.get()) != ARCHIVE_OK) return fail(archive_failure(a.get(), sink, "close zip"));
  return {};
}

}  // namespace

Result<Package> pack_folder(const std::string& folder, const PackOptions& options) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return fail(system_error(error.value(), "working folder " + folder));
  if (!fs::is_directory(root, error)) return fail(ErrorCode::invalid_argument, "{} is not a folder", folder);
  HELIO_TRY(files, Walk(root, options).run());
  if (files.empty()) return fail(ErrorCode::invalid_argument, "{} holds no file to upload", folder);
  HELIO_TRY(zip, TempFile::create());
  Sink sink;
  sink.fd = zip.fd();
  sink.limit = options.limit.n;
  auto written = write_zip(root, files, options, sink);
  if (sink.over) return fail(too_large(std::move(files), folder, options.limit));
  if (!written) return fail(std::move(written).error());
  Package package{.zip = std::move(zip), .sha256 = sink.digest.finish_hex()};
  package.files = static_cast<std::int64_t>(files.size());
  package.size = {sink.written};
  for (const FoundFile& file : files) package.unpacked.n += file.size;
  return package;
}

Result<ZipFile> inspect_zip(const std::string& path, Bytes limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return fail(system_error(errno, "read " + path));
  if (info.st_size > limit.n) {
    return fail(ErrorCode::resource_exhausted, "{} has {}, more than {}", path, format_bytes({info.st_size}), format_bytes(limit));
  }
  Sha256 digest;
  char buffer[64 << 10];
  bool first = true;
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read " + path));
    const std::string_view piece(buffer, static_cast<std::size_t>(n));
    if (first && !piece.starts_with("PK")) return fail(ErrorCode::invalid_argument, "{} is not a zip file", path);
    if (n == 0) break;
    first = false;
    digest.update(piece);
  }
  return ZipFile{digest.finish_hex(), {info.st_size}};
}

}  // namespace helio::cli
