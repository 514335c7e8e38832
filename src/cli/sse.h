#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace helio::cli {

struct SseEvent {
  std::string type;  ///< "message" when the stream names none
  std::string id;
  std::string data;
};

/// Server-sent events from pieces of any size. Comments (keep-alives) are dropped.
class SseParser {
 public:
  /// Calls `on_event` for each event that `bytes` completes.
  void feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event);

 private:
  void line(std::string_view text, const std::function<void(const SseEvent&)>& on_event);
  std::string pending_;
  SseEvent event_;
  bool has_data_ = false;
};

}  // namespace helio::cli
