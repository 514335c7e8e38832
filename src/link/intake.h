#pragma once
// Internal to link/: the log streams of one connection, on their way into the log store.

#include "link/core.h"
#include "link/frames.h"

#include <functional>
#include <map>
#include <string>

namespace helio::link {

/// Everything runs on one strand. Sends through `send`; acknowledgements go from the syncer straight to `sink`.
class Intake {
 public:
  Intake(Core& core, AttemptId attempt, NodeId node, std::weak_ptr<AckSink> sink, std::function<void(std::string)> send,
         std::function<void(Duration)> retry_later)
      : core_(core),
        attempt_(std::move(attempt)),
        node_(std::move(node)),
        sink_(std::move(sink)),
        send_(std::move(send)),
        retry_later_(std::move(retry_later)) {}

  /// A stream, or its end. Answers with the offset to go on from, or (end) with an acknowledgement once all is durable.
  void announce(const model::StreamInfo& info);
  void data(const DataFrame& frame);
  /// Asks the agent to go on with streams that were refused for a cause that passes (disk full). Called once for each `retry_later`.
  void retry();

 private:
  struct Stream {
    store::StreamKey key;
    std::string name;
    std::string kind;
    std::int64_t size = 0;
    bool rewinding = false;  ///< the agent has been told where to go on; frames on their way are dropped until it does
    bool stalled = false;    ///< the log store refused; retry() tells where to go on
    bool unopened = false;   ///< open() itself failed
  };

  void open(std::int32_t id, Stream& stream);
  void tell_offset(std::int32_t id, const Stream& stream);
  void stall(Stream& stream, const Error& error);

  Core& core_;
  AttemptId attempt_;
  NodeId node_;
  std::weak_ptr<AckSink> sink_;
  std::function<void(std::string)> send_;
  std::function<void(Duration)> retry_later_;
  std::map<std::int32_t, Stream> streams_;
  bool waiting_ = false;     ///< a retry is on its way, for all streams
  Duration pause_{0};        ///< before the last retry; 0: nothing has been refused since the last success
  MonoTime said_;            ///< when the log last heard of a refusal; none yet: 0
  std::int64_t unsaid_ = 0;  ///< refusals since then
};

}  // namespace helio::link
