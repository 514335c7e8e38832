#include "net/spool.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>

namespace helio::net {

SpoolFile::~SpoolFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<void> SpoolFile::open(const std::string& folder) {
  std::string path = folder + "/body-XXXXXX";
  fd_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd_ < 0) return fail(system_error(errno, "create a file for the request's body"));
  path_ = std::move(path);
  return {};
}

Result<void> SpoolFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "store the request's body"));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace helio::net
