#include "cli/package.h"

#include "base/hash.h"
#include "cli/ignore.h"
#include "cli/zip_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

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
      const auto text = read_file((here / name).string(), kUserFileLimit);
      // Without its rules, what they keep out would be uploaded.
      if (!text && text.error().code() != ErrorCode::not_found) return fail(text.error());
      if (text) rules_.add_file(*text, below);
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

Result<void> write_zip(const fs::path& root, const std::vector<FoundFile>& files, const PackOptions& options, ZipWriter& zip) {
  for (const FoundFile& file : files) {
    const std::string source = (root / file.path).string();
    const UniqueFd fd(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return fail(system_error(errno, "read " + source));
    const std::string name = options.parent.empty() ? file.path : options.parent + "/" + file.path;
    HELIO_CHECK_OK(zip.add(name, fd.get(), source, file.executable));
  }
  return zip.finish();
}

}  // namespace

Result<Package> pack_folder(const std::string& folder, const PackOptions& options) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return fail(system_error(error.value(), "working folder " + folder));
  if (!fs::is_directory(root, error)) return fail(ErrorCode::invalid_argument, "{} is not a folder", folder);
  HELIO_TRY(files, Walk(root, options).run());
  if (files.empty()) return fail(ErrorCode::invalid_argument, "{} holds no file to upload", folder);
  HELIO_TRY(file, TempFile::create());
  ZipWriter zip(file.fd(), options.limit);
  auto written = write_zip(root, files, options, zip);
  if (zip.over()) return fail(too_large(std::move(files), folder, options.limit));
  if (!written) return fail(std::move(written).error());
  Package package{.zip = std::move(file), .sha256 = zip.digest()};
  package.files = static_cast<std::int64_t>(files.size());
  package.size = zip.written();
  for (const FoundFile& found : files) package.unpacked.n += found.size;
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
