#pragma once
// Internal to link/: one connection of one node's agent.

#include "link/core.h"
#include "link/intake.h"
#include "net/websocket.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace helio::link {

class Session final : public AckSink, public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Core> core, std::shared_ptr<net::WsSession> socket, NodeId node, AttemptId attempt);

  /// Starts the deadline of `hello`. Once, before the first frame.
  net::WsHandlers start();
  [[nodiscard]] const NodeId& node() const { return node_; }
  void close(int code, const std::string& reason);

  /// Sends the node's assignment if its generation is newer than the last one sent. On the node's strand.
  void push_assignment();
  /// See Hub::exec().
  Result<std::function<void()>> exec(const ExecRequest& request, ExecHandlers handlers);
  void acknowledge(const std::vector<Ack>& acks) override;

 private:
  // on the event loop
  void on_text(std::string_view frame);
  void on_binary(std::string_view frame);
  void on_closed(const Error& why);
  void on_hello(const json::Value& frame);
  void on_status(const json::Value& frame);
  void on_stream(const json::Value& frame);
  void on_exec_output(const json::Value& frame);
  void on_exec_done(const json::Value& frame);

  // on the node's strand
  void record_open();
  void record_pending();
  // on the stream strand
  void with_intake(std::function<void(Intake&)> use);

  void send(std::string frame);
  void cancel_exec(const std::string& id);
  void finish_exec(const std::string& id, Result<std::int32_t> result);

  const std::shared_ptr<Core> core_;
  const std::weak_ptr<net::WsSession> socket_;
  const NodeId node_;
  const AttemptId attempt_;
  const std::shared_ptr<Strand> streams_;
  std::shared_ptr<NodeEntry> entry_;  ///< from hello on
  std::unique_ptr<Intake> intake_;    ///< made on first use, on the stream strand
  bool greeted_ = false;              ///< event loop
  std::atomic<bool> closed_{false};
  std::atomic<std::size_t> unhandled_{0};  ///< bytes of data frames between socket and log store
  Executor::TimerId hello_timer_ = 0;
  bool opened_ = false;               ///< node's strand: `welcome` comes before any assignment
  std::int64_t sent_generation_ = 0;  ///< node's strand

  std::mutex mutex_;
  std::optional<model::AgentStatus> pending_;  ///< latest status that waits to be recorded: the others are void
  std::map<std::string, std::shared_ptr<ExecHandlers>> execs_;
};

}  // namespace helio::link
