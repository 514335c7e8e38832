#include "proc/file_watch.h"

#include "base/log.h"
#include "proc/files.h"

#include <sys/inotify.h>
#include <unistd.h>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <map>
#include <mutex>

namespace helio::proc {
namespace {

constexpr std::uint32_t kMask = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF |
                                IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK | IN_MASK_CREATE;

FileEvent event_of(std::uint32_t mask, const char* name) {
  FileEvent out;
  out.name = name;
  out.is_folder = (mask & IN_ISDIR) != 0;
  if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
    out.kind = FileEvent::Kind::created;
  } else if ((mask & IN_MODIFY) != 0) {
    out.kind = FileEvent::Kind::modified;
  } else if ((mask & IN_CLOSE_WRITE) != 0) {
    out.kind = FileEvent::Kind::closed;
  } else {
    out.kind = FileEvent::Kind::gone;
  }
  return out;
}

/// What pending handlers keep alive after the FileWatch is gone.
struct State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& context, int fd) : inotify(context, fd) {}

  boost::asio::posix::stream_descriptor inotify;
  std::mutex mutex;
  std::map<int, std::shared_ptr<FileWatch::Callback>> watches;
  bool closed = false;
  alignas(inotify_event) std::array<char, 65536> buffer{};

  void wait() {
    inotify.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](const boost::system::error_code& error) {
                         if (error) return;
                         self->take();
                         self->wait();
                       });
  }

  void take() {
    for (;;) {
      const ssize_t n = ::read(inotify.native_handle(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // EAGAIN: all taken
      for (ssize_t at = 0; at < n;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);  // NOLINT: the kernel's layout
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        deliver(event->wd, event->mask, event->len > 0 ? event->name : "");
      }
    }
  }

  void deliver(int watch, std::uint32_t mask, const char* name) {
    if ((mask & IN_Q_OVERFLOW) != 0) return overflow();
    std::shared_ptr<FileWatch::Callback> callback;
    FileEvent event = event_of(mask, name);
    {
      const std::lock_guard lock(mutex);
      if (closed) return;
      const auto found = watches.find(watch);
      if (found == watches.end()) return;
      callback = found->second;
      if ((mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
        event.kind = FileEvent::Kind::ended;
        watches.erase(found);
        if ((mask & IN_MOVE_SELF) != 0) inotify_rm_watch(inotify.native_handle(), watch);
      }
    }
    (*callback)(event);
  }

  void overflow() {
    log::warn("inotify lost events: fs.inotify.max_queued_events is too small for this node's files");
    std::vector<int> ids;
    {
      const std::lock_guard lock(mutex);
      for (const auto& [id, callback] : watches) ids.push_back(id);
    }
    for (const int id : ids) {
      std::shared_ptr<FileWatch::Callback> callback;
      {
        const std::lock_guard lock(mutex);
        const auto found = watches.find(id);
        if (closed || found == watches.end()) continue;
        callback = found->second;
      }
      (*callback)(FileEvent{.kind = FileEvent::Kind::overflow, .name = "", .is_folder = false});
    }
  }
};

class InotifyWatch final : public FileWatch {
 public:
  InotifyWatch(rt::EventLoop& loop, int fd) : loop_(loop), state_(std::make_shared<State>(loop.context(), fd)) {
    loop.post([state = state_] { state->wait(); });
  }
  ~InotifyWatch() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->closed = true;
      state_->watches.clear();
    }
    loop_.post([state = state_] {
      boost::system::error_code ignored;
      state->inotify.close(ignored);
    });
  }

  Result<WatchId> add(const std::string& folder, Callback callback) override {
    // Under the lock, so that the first event finds its callback.
    const std::lock_guard lock(state_->mutex);
    const int id = inotify_add_watch(state_->inotify.native_handle(), folder.c_str(), kMask);
    if (id < 0) return fail(system_error(errno, "watch " + folder));
    state_->watches[id] = std::make_shared<Callback>(std::move(callback));
    return id;
  }

  void remove(WatchId watch) override {
    const std::lock_guard lock(state_->mutex);
    if (state_->watches.erase(watch) > 0) inotify_rm_watch(state_->inotify.native_handle(), watch);
  }

 private:
  rt::EventLoop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace

Result<std::unique_ptr<FileWatch>> open_file_watch(rt::EventLoop& loop) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return fail(system_error(errno, "open inotify"));
  return std::make_unique<InotifyWatch>(loop, fd);
}

}  // namespace helio::proc
