#include "cli/sse.h"

namespace helio::cli {

void SseParser::feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event) {
  pending_.append(bytes);
  std::size_t start = 0;
  for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n', start)) {
    std::string_view text = std::string_view(pending_).substr(start, end - start);
    if (text.ends_with('\r')) text.remove_suffix(1);
    line(text, on_event);
    start = end + 1;
  }
  pending_.erase(0, start);
}

void SseParser::line(std::string_view text, const std::function<void(const SseEvent&)>& on_event) {
  if (text.empty()) {
    if (has_data_) {
      if (event_.type.empty()) event_.type = "message";
      on_event(event_);
    }
    event_ = {};
    has_data_ = false;
    return;
  }
  const std::size_t colon = text.find(':');
  if (colon == 0) return;
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  } else if (field == "id") {
    event_.id = value;
  }
}

}  // namespace helio::cli
