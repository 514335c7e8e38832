#pragma once
// The agent's side of its one websocket to the daemon: dials for ever, with back-off, and speaks the frames of api/agent-protocol.md.

#include "base/executor.h"
#include "model/agent_protocol.h"
#include "net/client.h"
#include "rt/event_loop.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace helio::agent {

struct StreamAck {
  std::int32_t id = 0;
  std::int64_t offset = 0;
  bool ended = false;
};

struct ExecRequest {
  std::string id;
  std::vector<std::string> argv;
  std::string program;  ///< instead of argv: model::program
  Duration limit{60s};
};

/// Called on the event loop; they must only post.
struct LinkHandlers {
  std::function<void()> on_welcome;
  std::function<void()> on_lost;  ///< after on_welcome only
  std::function<void(model::Assignment)> on_assignment;
  std::function<void(std::int64_t sequence)> on_recorded;
  std::function<void(model::StreamInfo)> on_stream;
  std::function<void(std::vector<StreamAck>)> on_acks;
  std::function<void(ExecRequest)> on_exec;
  std::function<void(std::string id)> on_exec_cancel;
  std::function<void()> on_drained;  ///< a queue that was full has room again
};

/// The binary frame of a piece of a stream.
std::string encode_piece(std::int32_t stream, std::int64_t offset, std::string_view bytes);

class DaemonLink {
 public:
  /// `address` is asked before each dial. `timers` runs the back-off.
  DaemonLink(rt::EventLoop& loop, Executor& timers, std::function<Result<std::string>()> address, std::string token,
             std::function<model::AgentHello()> hello, LinkHandlers handlers);
  /// stop().
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  void start();
  /// Closes for good, after what is queued has gone out. Idempotent.
  void stop();
  [[nodiscard]] bool connected() const;

  /// False when there is no connection, or its queue is full. Any thread.
  bool send_status(const model::AgentStatus& status);
  bool send_stream(const model::StreamInfo& info);
  bool send_piece(std::int32_t stream, std::int64_t offset, std::string_view bytes);
  bool send_exec_output(const std::string& id, std::string_view bytes);
  bool send_exec_done(const std::string& id, std::optional<int> exit_code, const std::string& error);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace helio::agent
