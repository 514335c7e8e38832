#include "api/route.h"
#include "base/utf8.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <memory>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

constexpr std::size_t kPiece = 256U << 10U;
constexpr std::size_t kMostEntries = 10'000;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class FileBody final : public net::BodySource {
 public:
  explicit FileBody(Descriptor file) : file_(std::move(file)) {}
  Piece next() override {
    std::string bytes(kPiece, '\0');
    ssize_t n = 0;
    do {
      n = ::read(file_.get(), bytes.data(), bytes.size());
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return {Piece::Kind::end, {}};
    bytes.resize(static_cast<std::size_t>(n));
    return {Piece::Kind::data, std::move(bytes)};
  }
  void set_waker(std::function<void()>) override {}

 private:
  Descriptor file_;
};

std::unexpected<Error> bad_path(std::string message) {
  return fail(Error(ErrorCode::invalid_argument, std::move(message)).at("query.path"));
}

/// Parts of a relative path; refused are "..", "." and absolute paths, so that nothing depends on how a file system reads them.
Result<std::vector<std::string>> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  if (path.starts_with('/')) return bad_path("expected a path below outputs or checkpoints, without a leading /");
  if (path.find('\0') != std::string::npos) return bad_path("a path holds no NUL");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, slash - at);
    if (part == ".." || part == ".") return bad_path("a path holds no '.' or '..'");
    if (!part.empty()) parts.push_back(part);
    at = slash + 1;
  }
  return parts;
}

/// Opens step by step without following any link: what a job put there cannot lead out.
Result<Descriptor> open_below(const std::string& root, const std::vector<std::string>& parts) {
  Descriptor at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  std::string seen;
  for (std::size_t i = 0; i < parts.size() && at.get() >= 0; ++i) {
    seen += (i == 0 ? "" : "/") + parts[i];
    // O_NONBLOCK: a pipe that a job made must not hold the thread.
    at = Descriptor(::openat(at.get(), parts[i].c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (at.get() < 0 && errno == ELOOP) return bad_path("'" + seen + "' is a link, and links are not followed");
  }
  if (at.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return fail(Error(ErrorCode::not_found, "no such file or folder").at("query.path"));
  }
  if (at.get() < 0) return fail(system_error(errno, "open"));
  return at;
}

FileEntry entry_of(const std::string& name, const struct stat& info) {
  FileEntry entry;
  entry.name = name;
  entry.kind = S_ISREG(info.st_mode) ? "file" : S_ISDIR(info.st_mode) ? "folder" : "other";
  if (S_ISREG(info.st_mode)) entry.size = Bytes{info.st_size};
  entry.modified = Timestamp{info.st_mtim.tv_sec * 1'000'000 + info.st_mtim.tv_nsec / 1'000};
  if (!is_utf8(name)) {
    // Nobody could ask for it by the name that JSON can hold, so it is not offered as something to read.
    entry.name = escape_utf8(name);
    entry.kind = "other";
    entry.note = "its name is not UTF-8: here it is with escapes, and it cannot be read through this API";
  }
  return entry;
}

Result<FileList> list_folder(Descriptor folder, const std::string& path) {
  FileList out;
  out.path = path;
  const int fd = folder.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd), ::closedir);
  if (!dir) return fail(system_error(errno, "list"));
  folder.release();  // closedir closes it
  while (const dirent* found = ::readdir(dir.get())) {
    const std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    struct stat info{};
    if (::fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    if (out.items.size() >= kMostEntries) return fail(ErrorCode::resource_exhausted, "a folder of more than {} entries", kMostEntries);
    out.items.push_back(entry_of(name, info));
  }
  std::ranges::sort(out.items, {}, &FileEntry::name);
  return out;
}

Result<net::Response> read(Context& context, Call& call) {
  HELIO_TRY(job, context.jobs.get(call.job()));
  HELIO_TRY(parts, parts_of(call.text("path")));
  if (parts.empty()) {
    FileList roots;
    for (const char* name : {"checkpoints", "outputs"}) {
      struct stat info{};
      if (::stat((context.home.job(job.id.value) + "/" + name).c_str(), &info) == 0) roots.items.push_back(entry_of(name, info));
    }
    return reply(roots);
  }
  std::string root;
  if (parts[0] == "outputs") root = context.home.job_outputs(job.id.value);
  if (parts[0] == "checkpoints") root = context.home.job_checkpoints(job.id.value);
  if (root.empty()) return bad_path("a path starts with outputs or checkpoints");
  parts.erase(parts.begin());
  HELIO_TRY(file, open_below(root, parts));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail(system_error(errno, "stat"));
  if (S_ISDIR(info.st_mode)) {
    HELIO_TRY(list, list_folder(std::move(file), call.text("path")));
    return reply(list);
  }
  if (!S_ISREG(info.st_mode)) return bad_path("neither a file nor a folder");
  net::Response out;
  out.headers.emplace_back("Content-Type", "application/octet-stream");
  out.headers.emplace_back("X-Content-Type-Options", "nosniff");
  out.headers.emplace_back("X-Total-Size", std::to_string(info.st_size));
  out.source = std::make_unique<FileBody>(std::move(file));
  return out;
}

}  // namespace

void add_file_routes(Routes& routes) {
  routes.push_back({"GET",
                    "/v1/jobs/{id}/files",
                    "readJobFiles",
                    "List a folder or download a file below outputs and checkpoints",
                    Access{Verb::exec, Kind::job, true},
                    {{"path", "outputs/…, checkpoints/…; empty: both"}},
                    nullptr,
                    200,
                    schema_of<FileList>,
                    "application/json",
                    false,
                    read});
}

}  // namespace helio::api
