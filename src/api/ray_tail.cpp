#include "api/ray_tail.h"

#include "base/log.h"
#include "base/utf8.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace helio::api {
namespace {

/// The queue of a session that says when it is empty again (see WsSession).
constexpr std::size_t kHighWater = std::size_t{1} << 20U;
/// Clients refuse frames of more than 4 MiB; shorter ones show a long line sooner.
constexpr std::size_t kFrame = 32U << 10U;
constexpr int kNormal = 1000;

/// Bytes at the end of `text` that may be the start of a character: at most 3.
std::size_t unfinished(std::string_view text) {
  for (std::size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const auto lead = static_cast<unsigned char>(text[text.size() - n]);
    if ((lead & 0xC0U) == 0x80U) continue;  // goes on
    const std::size_t length = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : lead >= 0xC0U ? 2 : 1;
    return length > n ? n : 0;
  }
  return 0;
}

class Tail : public std::enable_shared_from_this<Tail> {
 public:
  Tail(std::shared_ptr<net::WsSession> session, std::unique_ptr<service::LogReader> reader, Executor& executor)
      : session_(std::move(session)), reader_(std::move(reader)), executor_(executor) {}

  void start() {
    reader_->set_waker([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->wake();
    });
    wake();
  }
  /// Any thread.
  void wake() {
    if (scheduled_.exchange(true)) return;
    executor_.post([self = shared_from_this()] { self->run(); });
  }
  void closed() {
    closed_ = true;
    wake();
  }

 private:
  void run() {
    scheduled_ = false;
    if (closed_) reader_.reset();
    while (reader_ && session_->queued() <= kHighWater) {
      const auto state = reader_->next(held_);
      if (!state) {
        log::warn("following a log: {}", state.error().text());
        reader_.reset();
        return session_->cut();
      }
      const bool ended = *state == service::LogReader::State::end;
      send(take_whole_characters(held_, ended));
      if (ended) {
        reader_.reset();
        session_->close(kNormal, {});
      }
      if (*state == service::LogReader::State::pending) return;
    }
  }

  void send(std::string_view text) {
    while (!text.empty()) {
      std::size_t size = std::min(text.size(), kFrame);
      if (size < text.size()) size -= unfinished(text.substr(0, size));
      session_->send_text(std::string(text.substr(0, size)));
      text.remove_prefix(size);
    }
  }

  const std::shared_ptr<net::WsSession> session_;
  std::unique_ptr<service::LogReader> reader_;  ///< executor's
  std::string held_;                            ///< executor's
  Executor& executor_;
  std::atomic<bool> scheduled_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace

std::string take_whole_characters(std::string& held, bool end) {
  const std::size_t kept = end ? 0 : unfinished(held);
  std::string out = held.substr(0, held.size() - kept);
  held.erase(0, out.size());
  return is_utf8(out) ? out : escape_utf8(out);
}

net::WsHandlers tail_log(std::shared_ptr<net::WsSession> session, std::unique_ptr<service::LogReader> reader, Executor& executor) {
  const auto tail = std::make_shared<Tail>(std::move(session), std::move(reader), executor);
  net::WsHandlers handlers;
  handlers.on_drained = [tail] { tail->wake(); };
  handlers.on_close = [tail](const Error&) { tail->closed(); };
  tail->start();
  return handlers;
}

}  // namespace helio::api
