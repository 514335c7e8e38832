#include "agent/agent.h"

#include "base/log.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace helio::agent {

namespace {
constexpr Duration kNoProgress = 30s;  ///< then the daemon is away, and whoever started the harvest decides
}

int harvest(NodeFiles files) {
  const std::string& work_dir = files.assignment.work_dir;
  std::mutex mutex;
  std::condition_variable changed;
  bool shipped = false;
  std::int64_t recorded = 0;
  std::int64_t progress = 0;
  const auto note = [&](auto change) {
    const std::scoped_lock lock(mutex);
    change();
    ++progress;
    changed.notify_all();
  };

  rt::EventLoop loop;
  std::unique_ptr<DaemonLink> link;
  rt::SerialExecutor timers("helio-brain");
  LogPump pump(loop, shipper_options(files.assignment),
               ShipperOut{.announce = [&](const model::StreamInfo& info) { return link->send_stream(info); },
                          .piece = [&](std::int32_t id, std::int64_t offset,
                                       std::string_view bytes) { return link->send_piece(id, offset, bytes); }},
               PumpEvents{.first_line = [] {}, .shipped = [&](bool all) { note([&] { shipped = all; }); }});
  LinkHandlers handlers;
  handlers.on_welcome = [&] {
    pump.connected();
    note([] {});
  };
  handlers.on_lost = [&] { pump.disconnected(); };
  handlers.on_assignment = [](const model::Assignment&) {};
  handlers.on_recorded = [&](std::int64_t sequence) { note([&] { recorded = std::max(recorded, sequence); }); };
  handlers.on_stream = [&](const model::StreamInfo& info) { pump.resume(info); };
  handlers.on_acks = [&](std::vector<StreamAck> acks) {
    pump.acknowledge(std::move(acks));
    note([] {});
  };
  handlers.on_exec = [&](const ExecRequest& request) { link->send_exec_done(request.id, std::nullopt, "the node has ended"); };
  link = std::make_unique<DaemonLink>(
      loop, timers, [&] { return daemon_address(files); }, files.token,
      [&] {
        return model::AgentHello{.node = files.assignment.node, .agent_version = "harvest", .generation = files.assignment.generation};
      },
      std::move(handlers));
  loop.start();
  pump.finish();
  link->start();

  std::unique_lock lock(mutex);
  const auto wait_for = [&](const auto& condition) {
    while (!condition()) {
      const std::int64_t before = progress;
      if (!changed.wait_for(lock, kNoProgress, [&] { return progress != before || condition(); })) return false;
    }
    return true;
  };
  int code = 1;
  if (wait_for([&] { return shipped; })) {
    model::AgentStatus status = read_final(work_dir).value_or(model::AgentStatus{.node = files.assignment.node});
    status.sequence = std::max(status.sequence + 1, SystemClock::instance().now().us);
    status.generation = files.assignment.generation;
    status.logs_complete = true;
    status.reached = model::Phase::gone;
    link->send_status(status);
    if (wait_for([&] { return recorded >= status.sequence; })) code = 0;
    if (auto written = write_final(work_dir, status); !written) log::warn("final status: {}", written.error().text());
  }
  lock.unlock();
  link->stop();
  timers.stop();
  loop.stop();
  return code;
}

}  // namespace helio::agent
