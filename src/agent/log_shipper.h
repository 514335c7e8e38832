#pragma once
// Ships a node's log files to the daemon by byte offset, from the files that Ray itself writes: there is no second copy.
// Plain synchronous code; one thread at a time. When to look is its owner's to say.

#include "base/error.h"
#include "base/units.h"
#include "model/agent_protocol.h"

#include <sys/types.h>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace helio::agent {

/// Pieces on the wire have at most this many bytes.
inline constexpr std::size_t kPieceBytes = 256U << 10U;
/// Sent and not yet acknowledged, all streams together.
inline constexpr std::int64_t kWindowBytes = 4LL << 20;

/// A file outside of Ray's session that is shipped too.
struct LocalLog {
  std::string path;
  std::string stream;
  std::string kind;
};

struct ShipperOptions {
  std::string temp_dir;       ///< session folders are found below it
  std::string submission_id;  ///< its driver log becomes stream "driver"
  bool driver_only = false;   ///< the other logs of the session are not this node's
  std::vector<LocalLog> locals;
  Bytes log_limit;  ///< of an attempt; a stream's share is cut from it. 0: none
};

/// What the shipper needs of a connection. Each returns false when nothing was sent.
struct ShipperOut {
  std::function<bool(const model::StreamInfo&)> announce;
  std::function<bool(std::int32_t stream, std::int64_t offset, std::string_view bytes)> piece;
};

class LogShipper {
 public:
  LogShipper(ShipperOptions options, ShipperOut out);

  /// A new connection: every stream is announced again, and goes on where the daemon says.
  void connected();
  void disconnected();
  /// The daemon holds `offset` bytes of this stream: go on from there (also after a gap).
  void resume(std::int32_t stream, std::int64_t offset);
  void acknowledge(std::int32_t stream, std::int64_t offset, bool ended);

  /// Looks at all files: new ones, growth, rotation. True when anything grew.
  bool scan();
  /// Sends what may be sent.
  void pump();
  /// No more will be written: streams end when they have been read whole.
  void finish();

  /// Every byte of every stream is acknowledged, and so is its end. After finish() only.
  [[nodiscard]] bool shipped() const;
  /// What a later acknowledgement has to reach for caught_up(): all that the files hold now.
  void remember();
  /// Since remember() all of that has been acknowledged.
  [[nodiscard]] bool caught_up() const;
  /// The entrypoint has written a line of its own into the driver's log.
  [[nodiscard]] bool first_line() const { return first_line_; }
  [[nodiscard]] const std::string& session_dir() const { return session_dir_; }
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }

 private:
  /// One file of a stream: [base, base + size) of it. Rotated files do not grow.
  struct Segment {
    std::string path;
    ino_t inode = 0;
    std::int64_t base = 0;
    std::int64_t size = 0;
  };
  struct Stream {
    std::int32_t id = 0;
    std::string name;
    std::string kind;
    std::deque<Segment> segments;
    std::set<ino_t> retired;  ///< rotated files that are whole on the other side
    std::int64_t limit = 0;   ///< bytes of content before the cut; 0: none
    std::string notice;       ///< the last line of a cut stream
    bool announced = false;
    bool granted = false;  ///< the daemon has said where to go on
    std::int64_t sent = 0;
    std::int64_t acked = 0;
    bool end_sent = false;
    bool end_acked = false;
    std::int64_t remembered = 0;
  };

  bool scan_folder(const std::string& folder);
  bool scan_file(const std::string& path, const std::string& name, const std::string& kind, int rotation);
  Stream& stream_of(const std::string& name, const std::string& kind);
  static void rotate(Stream& stream, const std::string& path, ino_t inode, std::int64_t size);
  void look_for_first_line();
  void announce(Stream& stream);
  bool send_piece(Stream& stream);
  /// Up to kPieceBytes from `offset` of the stream. Errors: not_found when the file is gone for good; others pass.
  Result<std::string> read(Stream& stream, std::int64_t offset);
  static Result<std::string> read_segment(const Segment& segment, std::int64_t offset, std::size_t max);
  [[nodiscard]] static std::int64_t content(const Stream& stream);
  [[nodiscard]] static std::int64_t total(const Stream& stream);
  [[nodiscard]] std::int64_t in_flight() const;
  [[nodiscard]] std::int64_t limit_of(const std::string& kind) const;

  ShipperOptions options_;
  ShipperOut out_;
  std::string session_dir_;
  std::map<std::int32_t, Stream> streams_;
  std::map<std::string, std::int32_t> by_name_;
  std::int32_t last_id_ = 0;
  bool connected_ = false;
  bool finished_ = false;
  bool remembers_ = false;
  bool first_line_ = false;
  std::int64_t first_line_at_ = 0;  ///< of the driver's stream: looked through up to here
};

}  // namespace helio::agent
