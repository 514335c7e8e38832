#include "agent/log_pump.h"

#include "base/log.h"

#include <utility>

namespace helio::agent {

namespace {
// A busy file makes an inotify event with each write. While files grow they are looked at this often instead.
constexpr Duration kBusyLook = 25ms;
constexpr int kQuietLooks = 4;            ///< without growth, then inotify again
constexpr Duration kSessionLook = 100ms;  ///< until Ray has made its session folder
constexpr Duration kNoInotify = 250ms;    ///< where inotify cannot be had
}  // namespace

LogPump::LogPump(rt::EventLoop& loop, ShipperOptions options, ShipperOut out, PumpEvents events)
    : loop_(loop), events_(std::move(events)), shipper_(std::move(options), std::move(out)) {
  auto watch = proc::open_file_watch(loop_);
  if (watch) {
    watch_ = std::move(*watch);
  } else {
    log::warn("log files are polled: {}", watch.error().text());
  }
}

LogPump::~LogPump() { executor_.stop(); }

void LogPump::expect_session() {
  executor_.post([this] {
    expecting_ = true;
    tick();
  });
}

void LogPump::connected() {
  executor_.post([this] {
    shipper_.scan();
    shipper_.connected();
  });
}

void LogPump::disconnected() {
  executor_.post([this] { shipper_.disconnected(); });
}

void LogPump::resume(const model::StreamInfo& info) {
  executor_.post([this, id = info.id, offset = info.offset.n] {
    shipper_.resume(id, offset);
    shipper_.pump();
  });
}

void LogPump::acknowledge(std::vector<StreamAck> acks) {
  executor_.post([this, acks = std::move(acks)] {
    for (const StreamAck& ack : acks) shipper_.acknowledge(ack.id, ack.offset, ack.ended);
    shipper_.pump();
    report();
  });
}

void LogPump::look() {
  executor_.post([this] { tick(); });
}

void LogPump::catch_up() {
  executor_.post([this] {
    shipper_.remember();
    tick();
  });
}

void LogPump::finish() {
  executor_.post([this] {
    shipper_.finish();
    expecting_ = false;
    disarm();
    executor_.cancel(timer_);
    report();
  });
}

void LogPump::report() {
  if (shipper_.first_line() && !std::exchange(said_first_line_, true)) events_.first_line();
  const bool shipped = shipper_.shipped();
  if (shipped != std::exchange(said_shipped_, shipped)) events_.shipped(shipped);
  if (shipper_.caught_up() && !std::exchange(said_caught_up_, true)) events_.caught_up();
}

void LogPump::schedule(Duration after) {
  executor_.cancel(timer_);
  timer_ = executor_.after(after, [this] { tick(); });
}

void LogPump::tick() {
  const bool grew = shipper_.scan();
  shipper_.pump();
  report();
  if (!expecting_) return;
  if (shipper_.session_dir().empty()) return schedule(kSessionLook);
  quiet_ = grew ? 0 : quiet_ + 1;
  if (quiet_ < kQuietLooks) return schedule(kBusyLook);
  if (!armed_) arm();
}

void LogPump::arm() {
  if (!watch_) return schedule(kNoInotify);
  for (const std::string& folder : {shipper_.session_dir() + "/logs", shipper_.session_dir() + "/logs/jobs"}) {
    auto added = watch_->add(folder, [this](const proc::FileEvent&) {
      executor_.post([this] {
        if (!armed_) return;
        disarm();
        quiet_ = 0;
        tick();
      });
    });
    if (added) {
      watches_.push_back(*added);
    } else if (added.error().code() != ErrorCode::not_found) {
      log::warn("log files are polled: {}", added.error().text());
    }
  }
  if (watches_.empty()) return schedule(kNoInotify);
  armed_ = true;
  // What was written between the last look and the watch.
  if (!shipper_.scan()) return;
  disarm();
  quiet_ = 0;
  shipper_.pump();
  report();
  schedule(kBusyLook);
}

void LogPump::disarm() {
  armed_ = false;
  for (const auto watch : watches_) watch_->remove(watch);
  watches_.clear();
}

}  // namespace helio::agent
