#include "api/wait.h"

#include "model/states.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace helio::api {
namespace {

/// The part that a late wake-up may still touch.
struct Alarm {
  std::mutex mutex;
  std::function<void()> waker;
  std::atomic<bool> over{false};

  void ring() {
    std::function<void()> call;
    {
      const std::scoped_lock lock(mutex);
      call = waker;
    }
    if (call) call();
  }
};

class WaitBody final : public net::BodySource {
 public:
  WaitBody(service::Jobs& jobs, service::Feed& feed, JobId job, Duration timeout) : jobs_(jobs), feed_(feed), job_(std::move(job)) {
    watch_ = feed_.watch(job_.value, [alarm = alarm_] { alarm->ring(); });
    timer_ = feed_.executor().after(timeout, [alarm = alarm_] {
      alarm->over = true;
      alarm->ring();
    });
  }
  ~WaitBody() override { feed_.executor().cancel(timer_); }
  WaitBody(const WaitBody&) = delete;
  WaitBody& operator=(const WaitBody&) = delete;

  Piece next() override {
    if (done_) return {Piece::Kind::end, {}};
    const bool over = alarm_->over.load();
    auto job = jobs_.get(job_);
    if (job && !model::is_terminal(job->state) && !over) return {Piece::Kind::pending, {}};
    done_ = true;
    // The status line is out already; a client tells a problem document by its `status` number.
    return {Piece::Kind::data, job ? json::dump(json::encode(*job)) : net::problem(job.error()).body};
  }
  void set_waker(std::function<void()> waker) override {
    const std::scoped_lock lock(alarm_->mutex);
    alarm_->waker = std::move(waker);
  }
  std::string keep_alive() override { return "\n"; }

 private:
  service::Jobs& jobs_;
  service::Feed& feed_;
  JobId job_;
  std::shared_ptr<Alarm> alarm_ = std::make_shared<Alarm>();
  std::unique_ptr<service::Feed::Watch> watch_;
  Executor::TimerId timer_ = 0;
  bool done_ = false;
};

}  // namespace

Result<net::Response> wait_for_end(service::Jobs& jobs, service::Feed& feed, const JobId& job, Duration timeout) {
  HELIO_TRY(now, jobs.get(job));
  if (model::is_terminal(now.state) || timeout <= Duration::zero()) return net::Response::json(200, json::dump(json::encode(now)));
  net::Response out;
  out.headers.emplace_back("Content-Type", "application/json");
  out.source = std::make_unique<WaitBody>(jobs, feed, job, timeout);
  return out;
}

}  // namespace helio::api
