#pragma once
// The one hop of a request: from the loop to a worker and back.

#include "net/asio_types.h"
#include "rt/event_loop.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

namespace helio::net {

template <class Work, class Handler>
class OffloadJob {
 public:
  OffloadJob(Executor executor, Work work, Handler handler)
      : executor_(std::move(executor)), work_(std::move(work)), handler_(std::move(handler)) {}
  OffloadJob(const OffloadJob&) = delete;
  OffloadJob& operator=(const OffloadJob&) = delete;
  /// Refused or dropped by the pool: the coroutine must go on all the same, and on the loop.
  ~OffloadJob() { finish(false); }

  void run() {
    work_();
    finish(true);
  }

 private:
  void finish(bool ran) {
    if (finished_) return;
    finished_ = true;
    asio::post(executor_, [handler = std::move(handler_), ran]() mutable { std::move(handler)(ran); });
  }

  Executor executor_;
  Work work_;
  Handler handler_;
  bool finished_ = false;
};

/// Runs `work` (which must not throw, and may refer to the coroutine's frame) on the pool. False when the pool did not take or run it.
template <class Work>
Awaitable<bool> offload(rt::WorkerPool& pool, Executor executor, Work work) {
  auto initiate = [&pool, executor](auto handler, Work given) {
    using Job = OffloadJob<Work, decltype(handler)>;
    auto job = std::make_unique<Job>(executor, std::move(given), std::move(handler));
    // A refusal destroys the job, which completes the operation.
    static_cast<void>(pool.try_post([owned = std::move(job)] { owned->run(); }));
  };
  const asio::use_awaitable_t<Executor> token;
  const bool ran =
      co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void(bool)>(std::move(initiate), token, std::move(work));
  co_return ran;
}

}  // namespace helio::net
