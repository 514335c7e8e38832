#include "service/packages.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "service/fields.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace helio::service {
namespace {

constexpr std::size_t kMaxEntries = 200'000;
/// A zip may unpack to this much of its own limit; what is beyond is a bomb.
constexpr std::int64_t kMaxRatio = 100;

std::unexpected<Error> bad_zip(std::string message) { return wrong("$", "{}", message); }

/// Descriptor of a file that is being looked at.
class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

bool is_digest(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::ranges::all_of(text, hex);
}

Result<std::string> digest_of(int fd) {
  Sha256 sha;
  std::string buffer(256 * 1024, '\0');
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "read the upload"));
    if (n == 0) return sha.finish_hex();
    sha.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
  }
}

bool has_dots(std::string_view path) { return path == ".." || path.starts_with("../") || path.ends_with("/..") || path.contains("/../"); }

/// Whether a link at `name` with this target stays inside. Dots are allowed in front only: behind another link they would not lead where
/// they seem to.
bool stays_inside(std::string_view name, std::string_view target) {
  auto up = std::ranges::count(name, '/');
  while (target == ".." || target.starts_with("../")) {
    if (--up < 0) return false;
    target.remove_prefix(std::min<std::size_t>(3, target.size()));
  }
  return !target.starts_with('/') && !has_dots(target);
}

/// What must hold over all entries.
struct Contents {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> links;
  std::int64_t bytes = 0;
};

Result<void> check_entry(archive_entry* entry, Contents& contents) {
  const char* raw = ::archive_entry_pathname(entry);
  std::string_view name = raw == nullptr ? std::string_view() : std::string_view(raw);
  if (name.empty()) return bad_zip(fmt::format("entry {} of the zip has no name, or one that is not UTF-8", contents.names.size() + 1));
  if (!is_utf8(name)) return bad_zip(fmt::format("the name of entry '{}' is not UTF-8", escape_utf8(name)));
  if (name.starts_with('/') || name.starts_with('\\') || (name.size() > 1 && name[1] == ':')) {
    return bad_zip(fmt::format("entry '{}' has an absolute path; paths in a package are relative to its root", name));
  }
  if (has_dots(name) || name.contains("..\\")) return bad_zip(fmt::format("entry '{}' leads out of the package by '..'", name));
  while (name.ends_with('/')) name.remove_suffix(1);
  while (name.starts_with("./")) name.remove_prefix(2);
  contents.bytes += std::max<std::int64_t>(0, ::archive_entry_size(entry));
  contents.names.emplace_back(name);
  const auto type = ::archive_entry_filetype(entry);
  if (type == AE_IFLNK) {
    const char* target = ::archive_entry_symlink(entry);
    if (target == nullptr || name.contains("//") || !stays_inside(name, target)) {
      return bad_zip(fmt::format("entry '{}' is a link out of the package, to '{}'", name, target == nullptr ? "?" : target));
    }
    contents.links.emplace(name);
  } else if (type != AE_IFREG && type != AE_IFDIR) {
    return bad_zip(fmt::format("entry '{}' is neither a file nor a folder nor a link", name));
  }
  return {};
}

/// No entry may lie below a link: unpacking would follow it.
Result<void> check_links(const Contents& contents) {
  if (contents.links.empty()) return {};
  for (const std::string_view name : contents.names) {
    for (auto slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
      if (contents.links.contains(name.substr(0, slash))) return bad_zip(fmt::format("entry '{}' lies below a link", name));
    }
  }
  return {};
}

/// libarchive gives names in the encoding of the thread's locale, and a daemon has none: in that of C every name beyond ASCII is lost.
class Utf8Names {
 public:
  Utf8Names() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)), former_(locale_ ? ::uselocale(locale_) : nullptr) {}
  ~Utf8Names() {
    if (locale_ == nullptr) return;
    ::uselocale(former_);
    ::freelocale(locale_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  locale_t locale_;
  locale_t former_;
};

struct CloseArchive {
  void operator()(archive* a) const { ::archive_read_free(a); }
};

/// A zip without entries is its end record alone; libarchive does not take that for a zip.
bool is_empty_zip(int fd) {
  constexpr std::string_view kRecord("PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
  std::array<char, kRecord.size() + 1> bytes{};
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  return n == static_cast<ssize_t>(kRecord.size()) && std::string_view(bytes.data(), kRecord.size()) == kRecord;
}

Result<void> check_zip(int fd, Bytes limit) {
  if (is_empty_zip(fd)) return {};
  const Utf8Names names;
  const std::unique_ptr<archive, CloseArchive> zip(::archive_read_new());
  if (!zip) return fail(ErrorCode::internal, "libarchive cannot start");
  const auto what = [&] {
    const char* text = ::archive_error_string(zip.get());
    return std::string(text == nullptr ? "not a zip file" : text);
  };
  if (::archive_read_support_format_zip_seekable(zip.get()) != ARCHIVE_OK) return fail(ErrorCode::internal, "libarchive knows no zip");
  if (::lseek(fd, 0, SEEK_SET) < 0) return fail(system_error(errno, "read the upload"));
  if (::archive_read_open_fd(zip.get(), fd, 64 * 1024) != ARCHIVE_OK) return bad_zip("is not a zip file: " + what());
  Contents contents;
  while (true) {
    archive_entry* entry = nullptr;
    const int rc = ::archive_read_next_header(zip.get(), &entry);
    if (rc == ARCHIVE_EOF) break;
    if (rc < ARCHIVE_WARN) return bad_zip("is not a whole zip file: " + what());
    HELIO_CHECK_OK(check_entry(entry, contents));
    if (contents.names.size() > kMaxEntries) return bad_zip(fmt::format("has more than {} entries", kMaxEntries));
    if (contents.bytes > limit.n * kMaxRatio)
      return bad_zip(fmt::format("unpacks to more than {}", format_bytes(Bytes{limit.n * kMaxRatio})));
  }
  return check_links(contents);
}

Result<void> check_file(std::string_view sha256, const std::string& file, Bytes limit) {
  const File opened(file);
  if (opened.fd() < 0) return fail(system_error(errno, "open the upload"));
  struct stat info{};
  if (::fstat(opened.fd(), &info) != 0) return fail(system_error(errno, "stat the upload"));
  if (info.st_size > limit.n) {
    return fail(
        Error(ErrorCode::resource_exhausted,
              fmt::format("the package has {}; at most {} are allowed (server.package_limit); leave data out by excludes, or mount it",
                          format_bytes(Bytes{info.st_size}), format_bytes(limit)))
            .at("$"));
  }
  HELIO_TRY(digest, digest_of(opened.fd()));
  if (digest != sha256) return wrong("$", "the content has the SHA-256 {}, not {}: it was damaged on its way", digest, sha256);
  HELIO_CHECK_OK(check_zip(opened.fd(), limit));
  // Rows will refer to it.
  if (::fsync(opened.fd()) != 0) return fail(system_error(errno, "sync the upload"));
  return {};
}

Result<void> move_in(const std::string& file, const std::string& target, const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return fail(system_error(errno, "make folder " + folder));
  if (::chmod(file.c_str(), 0600) != 0) return fail(system_error(errno, "chmod the upload"));
  if (::rename(file.c_str(), target.c_str()) != 0) return fail(system_error(errno, "move the upload to " + target));
  const File opened(folder);
  if (opened.fd() < 0 || ::fsync(opened.fd()) != 0) return fail(system_error(errno, "sync " + folder));
  return {};
}

}  // namespace

Packages::Packages(const model::Home& home, const model::Settings& settings) : home_(home), settings_(settings) {}

bool Packages::exists(std::string_view sha256) const {
  return is_digest(sha256) && ::access(home_.package(std::string(sha256)).c_str(), R_OK) == 0;
}

Result<void> Packages::put(std::string_view sha256, const std::string& file) {
  Result<void> done;
  if (!is_digest(sha256)) {
    done = wrong("$", "expected the name to be 64 lower-case hex digits, the SHA-256 of the content");
  } else {
    done = check_file(sha256, file, settings_.server.package_limit);
  }
  if (done) done = move_in(file, home_.package(std::string(sha256)), home_.packages());
  if (!done) ::unlink(file.c_str());
  return done;
}

Result<std::string> Packages::add(const std::string& file) {
  Result<std::string> digest = std::string();
  {
    const File opened(file);
    digest = opened.fd() < 0 ? fail(system_error(errno, "open the upload")) : digest_of(opened.fd());
  }
  if (!digest) {
    ::unlink(file.c_str());
    return digest;
  }
  HELIO_CHECK_OK(put(*digest, file));
  return digest;
}

}  // namespace helio::service
