#include "provider/local/places.h"

#include "base/hash.h"
#include "proc/files.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <vector>

namespace helio::provider::local {
namespace {

constexpr std::int32_t kFirstPort = 10000;
constexpr std::int32_t kRayClientFrom = 23000;  // Ray Client servers take ports here by themselves
constexpr std::int32_t kRayClientTo = 23999;
constexpr std::int32_t kAddressesPerSlot = 252;
constexpr std::uint32_t kAddressBlocks = 220U * 256U;  // 127.20.0.x to 127.239.255.x

std::string canonical(const std::string& path) {
  std::array<char, PATH_MAX> resolved{};
  return realpath(path.c_str(), resolved.data()) != nullptr ? std::string(resolved.data()) : path;
}

std::string marker(const std::string& folder) { return folder + "/home"; }

/// Two homes whose hashes begin alike must not share a folder: the marker inside says whose it is.
std::string choose_folder(const std::string& root, const std::string& home) {
  std::string folder;
  for (int n = 0; n < 16; ++n) {
    const std::string hash = sha256_hex(n == 0 ? home : fmt::format("{}#{}", home, n));
    folder = root + "/" + hash.substr(0, 4);
    const auto owner = proc::read_file(marker(folder), PATH_MAX);
    if (!owner || *owner == home) return folder;
  }
  return folder;
}

/// A folder in a place that everybody may write to: make it or prove that it is ours and nobody else's.
/// `ours`: nobody else has a use for it, so it is made private. A folder that an administrator named keeps its mode.
Result<void> own_folder(const std::string& path, bool ours) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail(system_error(errno, "make folder " + path));
  const proc::Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!fd || fstat(fd.get(), &info) != 0) return fail(system_error(errno, "open folder " + path));
  if (info.st_uid != geteuid())
    return fail(ErrorCode::precondition_failed, "{} belongs to user {}, not to this daemon's", path, info.st_uid);
  if (!ours && (info.st_mode & 0022U) != 0) {
    return fail(ErrorCode::precondition_failed, "others can write to {} (pool.session_root): chmod go-w it, or name another folder", path);
  }
  if (ours && (info.st_mode & 0077U) != 0 && fchmod(fd.get(), 0700) != 0) return fail(system_error(errno, "close " + path));
  return {};
}

}  // namespace

Places::Places(model::Home home, std::string session_root) : home_(std::move(home)), session_root_(std::move(session_root)) {
  own_root_ = session_root_.empty();
  if (own_root_) session_root_ = fmt::format("/tmp/hs{}", geteuid());
  while (session_root_.size() > 1 && session_root_.ends_with('/')) session_root_.pop_back();
  const std::string path = canonical(home_.root);
  const std::string hash = sha256_hex(path);
  home_id_ = hash.substr(0, 16);
  std::from_chars(hash.data(), hash.data() + 6, number_, 16);
  session_folder_ = choose_folder(session_root_, path);
}

Result<void> Places::prepare() const {
  HELIO_CHECK_OK(own_folder(session_root_, own_root_));
  HELIO_CHECK_OK(own_folder(session_folder_, true));
  if (access(marker(session_folder_).c_str(), F_OK) == 0) return {};
  return proc::write_file(marker(session_folder_), canonical(home_.root));
}

std::string Places::temp_dir(std::int32_t slot, std::int32_t index) const { return fmt::format("{}/{}/{}", session_folder_, slot, index); }

std::string Places::work_dir(std::int32_t slot, std::int32_t index) const { return fmt::format("{}/{}-{}", home_.nodes(), slot, index); }

std::string Places::cgroup_name(std::int32_t slot, std::int32_t index) { return fmt::format("{}-{}", slot, index); }

Result<std::string> Places::address(std::int32_t slot, std::int32_t index) const {
  if (index >= kAddressesPerSlot) {
    return fail(ErrorCode::resource_exhausted, "a cluster on one host has at most {} nodes", kAddressesPerSlot);
  }
  const std::uint32_t block = (number_ + static_cast<std::uint32_t>(slot)) % kAddressBlocks;
  return fmt::format("127.{}.{}.{}", 20 + block / 256, block % 256, 2 + index);
}

std::int32_t Places::port_hint(std::int32_t slot, std::int32_t index) const {
  return static_cast<std::int32_t>((number_ + static_cast<std::uint32_t>(slot) * 7U + static_cast<std::uint32_t>(index)) % 100'000U);
}

std::int32_t ephemeral_ports_from() {
  const auto text = proc::read_file("/proc/sys/net/ipv4/ip_local_port_range", 256);
  std::int32_t low = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), low).ec != std::errc()) return 32768;
  return low;
}

bool ports_are_free(std::int32_t base) {
  // ray.md 2.5: 0..8 servers of the node, 9 and 10 metrics of the head, 20..99 workers and drivers.
  for (std::int32_t offset = 0; offset < kPortBlock; ++offset) {
    if (offset > 10 && offset < 20) continue;
    const proc::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return false;
    // As servers do: connections of an earlier node that linger in TIME_WAIT are no obstacle. listen() finds who bound the same way.
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(base + offset));
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;  // NOLINT: the API's cast
    if (listen(fd.get(), 1) != 0) return false;
  }
  return true;
}

Result<std::int32_t> find_ports(std::int32_t ephemeral_from, std::int32_t hint, const std::set<std::int32_t>& taken,
                                const std::function<bool(std::int32_t)>& is_free) {
  std::vector<std::int32_t> blocks;
  for (std::int32_t base = kFirstPort; base + kPortBlock <= std::min(ephemeral_from, 65536); base += kPortBlock) {
    if (base + kPortBlock <= kRayClientFrom || base > kRayClientTo) blocks.push_back(base);
  }
  if (blocks.empty()) {
    return fail(ErrorCode::resource_exhausted, "no free ports: net.ipv4.ip_local_port_range begins at {}, and nodes need ports in {}..{}",
                ephemeral_from, kFirstPort, ephemeral_from);
  }
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    const std::int32_t base = blocks[(static_cast<std::size_t>(hint) + n) % blocks.size()];
    if (!taken.contains(base) && is_free(base)) return base;
  }
  return fail(ErrorCode::resource_exhausted, "no free ports: all {} blocks of {} below {} are in use", blocks.size(), kPortBlock,
              ephemeral_from);
}

}  // namespace helio::provider::local
