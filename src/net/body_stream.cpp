#include "net/body_stream.h"

#include "base/log.h"

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

namespace helio::net {

namespace {
constexpr std::size_t kBatchBytes = 64U << 10U;
}

// Outlives the stream, and perhaps the loop, in the hands of wakers.
struct BodyStream::Bell {
  Bell(rt::EventLoop& l, Executor executor) : loop(&l), timer(std::in_place, executor) {}
  std::mutex mutex;
  rt::EventLoop* loop;  // null once nobody listens any more
  std::atomic<bool> posted{false};
  // Loop thread:
  std::optional<Timer> timer;
  bool rung = false;

  void ring() {
    rung = true;
    if (timer) timer->cancel();
  }
};

BodyStream::BodyStream(rt::EventLoop& loop, Executor executor, std::unique_ptr<BodySource> source)
    : bell_(std::make_shared<Bell>(loop, executor)), source_(std::move(source)) {
  source_->set_waker([bell = bell_] {
    if (bell->posted.exchange(true)) return;
    const std::scoped_lock lock(bell->mutex);
    if (bell->loop == nullptr) return;
    bell->loop->post([bell] {
      bell->posted = false;
      bell->ring();
    });
  });
}

BodyStream::~BodyStream() {
  const std::scoped_lock lock(bell_->mutex);
  bell_->loop = nullptr;
  bell_->timer.reset();
}

BodyStream::Batch BodyStream::pull(Silence silence) {
  Batch batch;
  try {
    std::size_t size = 0;
    const auto take = [&](std::string bytes) {
      if (bytes.empty()) return;
      size += bytes.size();
      batch.pieces.push_back(std::move(bytes));
    };
    if (silence == Silence::yes) take(source_->keep_alive());
    do {
      BodySource::Piece piece = source_->next();
      batch.last = piece.kind;
      batch.failed = piece.kind == BodySource::Piece::Kind::failed;
      if (piece.kind == BodySource::Piece::Kind::data) take(std::move(piece.bytes));
    } while (batch.last == BodySource::Piece::Kind::data && size < kBatchBytes);
  } catch (const std::exception& e) {
    log::error("http: a response body failed: {}", e.what());
    batch.failed = true;
  }
  return batch;
}

void BodyStream::listen() { bell_->rung = false; }

Awaitable<BodyStream::Silence> BodyStream::wait(Duration patience) {
  if (bell_->rung) co_return Silence::no;
  bell_->timer->expires_after(patience);
  const auto done = co_await bell_->timer->async_wait(kAwait);
  const auto& [ec] = done;
  co_return ec ? Silence::no : Silence::yes;
}

void BodyStream::interrupt() { bell_->ring(); }

}  // namespace helio::net
