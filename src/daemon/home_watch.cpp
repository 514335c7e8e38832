#include "daemon/home_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace helio::daemon {
namespace {

constexpr int kLookMs = 60'000;  ///< inotify sees nothing of what another machine does to a shared folder
/// A tree that is being removed is left to go: a file that is written again meanwhile would keep its folder there.
constexpr int kSettleMs = 300;
// Not what the store and the log write all the time.
constexpr std::uint32_t kMask =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

}  // namespace

HomeWatch::HomeWatch(const model::Home& home) : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (inotify_) ::inotify_add_watch(inotify_.get(), home.root.c_str(), kMask);
}

bool HomeWatch::drain() {
  bool ours = false;
  alignas(inotify_event) std::array<char, 8192> buffer;
  for (ssize_t n = 0; (n = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);  // NOLINT: as the kernel lays them out
      const std::string_view name = event->len == 0 ? std::string_view() : std::string_view(event->name);
      ours = ours || name.empty() || name == "lock" || name == "daemon.json";
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
  return ours;
}

void HomeWatch::wait(int other) {
  while (true) {
    std::array<pollfd, 2> fds{pollfd{other, POLLIN, 0}, pollfd{inotify_.get(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), kLookMs);
    if (ready == 0 || fds[0].revents != 0) return;
    if (ready < 0 || fds[1].revents == 0 || !drain()) continue;
    ::poll(fds.data(), 1, kSettleMs);
    return;
  }
}

}  // namespace helio::daemon
