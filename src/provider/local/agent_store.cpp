#include "provider/local/agent_store.h"

#include "base/hash.h"
#include "base/log.h"
#include "proc/files.h"

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace helio::provider::local {

Result<std::string> AgentStore::current() {
  struct stat info{};
  if (stat(binary_.c_str(), &info) != 0) return fail(system_error(errno, "agent program " + binary_));
  const std::string version = fmt::format("{}/{}/{}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  if (version == version_ && access(copy_.c_str(), X_OK) == 0) return copy_;
  HELIO_TRY(content, proc::read_file(binary_, 1U << 30U));
  const std::string folder = folder_ + "/" + sha256_hex(content).substr(0, 16);
  const std::string copy = folder + "/helio-agent";
  // A copy, not a link: a linker that writes in place would change the program under running nodes.
  if (access(copy.c_str(), X_OK) != 0) {
    HELIO_CHECK_OK(proc::make_folders(folder));
    HELIO_CHECK_OK(proc::write_file(copy, content, 0700));
  }
  version_ = version;
  copy_ = copy;
  return copy;
}

void AgentStore::keep_only(const std::set<std::string>& used) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string copy = entry.path().string() + "/helio-agent";
    if (copy == copy_ || used.contains(copy)) continue;
    if (const auto wiped = proc::wipe(entry.path().string()); !wiped) log::warn("old agent program: {}", wiped.error().text());
  }
}

}  // namespace helio::provider::local
