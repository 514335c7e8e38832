#pragma once
// Callbacks that end with an object, which may outlive what calls them. After that object's destructor the callback does not run any more,
// so it may refer to its owner. Any thread; a callback may end itself.

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace helio::store {

template <class... Args>
class Listeners {
 public:
  using Callback = std::function<void(Args...)>;

  class Handle {
   public:
    ~Handle() {
      {
        // Waits for a call in progress on another thread; recursive for one that ends itself.
        const std::lock_guard lock(entry_->mutex);
        entry_->callback = nullptr;
      }
      if (const auto list = list_.lock()) {
        const std::lock_guard lock(list->mutex);
        std::erase(list->entries, entry_);
      }
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

   private:
    friend class Listeners;
    struct Entry {
      std::recursive_mutex mutex;
      Callback callback;
    };
    struct List {
      std::mutex mutex;
      std::vector<std::shared_ptr<Entry>> entries;
    };
    Handle(std::weak_ptr<List> list, std::shared_ptr<Entry> entry) : list_(std::move(list)), entry_(std::move(entry)) {}
    std::weak_ptr<List> list_;
    std::shared_ptr<Entry> entry_;
  };

  std::unique_ptr<Handle> add(Callback callback) {
    auto entry = std::make_shared<typename Handle::Entry>();
    entry->callback = std::move(callback);
    {
      const std::lock_guard lock(list_->mutex);
      list_->entries.push_back(entry);
    }
    return std::unique_ptr<Handle>(new Handle(list_, std::move(entry)));
  }

  void call(const Args&... args) const {
    std::vector<std::shared_ptr<typename Handle::Entry>> entries;
    {
      const std::lock_guard lock(list_->mutex);
      entries = list_->entries;
    }
    for (const auto& entry : entries) {
      const std::lock_guard lock(entry->mutex);
      if (!entry->callback) continue;
      // A copy, for a callback that ends itself destroys the original.
      const Callback callback = entry->callback;
      callback(args...);
    }
  }

  [[nodiscard]] bool empty() const {
    const std::lock_guard lock(list_->mutex);
    return list_->entries.empty();
  }

 private:
  std::shared_ptr<typename Handle::List> list_ = std::make_shared<typename Handle::List>();
};

}  // namespace helio::store
