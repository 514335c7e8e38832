#pragma once
// Changes in folders by inotify, on the loop.

#include "base/error.h"
#include "rt/event_loop.h"

#include <functional>
#include <memory>
#include <string>

namespace helio::proc {

struct FileEvent {
  enum class Kind {
    created,   ///< also a folder, a link, or a file moved in
    modified,  ///< content grew or changed
    closed,    ///< a writer closed it
    gone,      ///< removed or moved out
    overflow,  ///< events were lost (name is empty): look at the folder again
    ended,     ///< the folder itself is gone (name is empty): no more will come
  };
  Kind kind = Kind::modified;
  std::string name;  ///< within the folder
  bool is_folder = false;
};

/// Several folders on one inotify descriptor. Callbacks run on the loop and may add and remove watches.
class FileWatch {
 public:
  using WatchId = int;
  using Callback = std::function<void(const FileEvent&)>;

  virtual ~FileWatch() = default;
  /// Events from now on; what lies there already is the caller's to list (after this call, so that nothing falls between). Any thread.
  /// Errors: not_found, resource_exhausted (fs.inotify.max_user_watches), already_exists.
  virtual Result<WatchId> add(const std::string& folder, Callback callback) = 0;
  /// No callback comes after this, when called on the loop.
  virtual void remove(WatchId watch) = 0;
};

/// Errors: resource_exhausted (fs.inotify.max_user_instances).
Result<std::unique_ptr<FileWatch>> open_file_watch(rt::EventLoop& loop);

}  // namespace helio::proc
