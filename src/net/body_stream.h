#pragma once
// A BodySource between the worker that asks it and the loop that writes it.

#include "net/asio_types.h"
#include "net/http.h"
#include "rt/event_loop.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace helio::net {

class BodyStream {
 public:
  BodyStream(rt::EventLoop& loop, Executor executor, std::unique_ptr<BodySource> source);
  /// The waker becomes a no-op. Loop thread.
  ~BodyStream();
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;

  struct Batch {
    std::vector<std::string> pieces;
    BodySource::Piece::Kind last = BodySource::Piece::Kind::end;
    bool failed = false;  ///< the source threw
  };
  enum class Silence { no, yes };
  /// Pieces until about 64 KiB, so that a source of short lines costs one hop and one write for many. After a silence its keep-alive text
  /// comes first. Worker thread.
  Batch pull(Silence silence);

  /// Loop thread. Before pull(): wakes from now on count.
  void listen();
  /// Until a wake since listen(), interrupt(), or `patience`.
  Awaitable<Silence> wait(Duration patience);
  void interrupt();

 private:
  struct Bell;
  std::shared_ptr<Bell> bell_;
  std::unique_ptr<BodySource> source_;
};

}  // namespace helio::net
