#pragma once
// Reading logs of a job over its attempts.

#include "base/clock.h"
#include "base/error.h"
#include "store/log_store.h"
#include "store/store.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace helio::service {

struct LogQuery {
  std::int32_t attempt = 0;  ///< 0: all, one after the other
  std::string node;          ///< head, w1, …, or a node id; empty: the node that holds the driver's log
  std::string stream = "driver";
  std::int64_t offset = 0;  ///< of the whole selection; negative: from the end
  std::int64_t limit = -1;  ///< bytes; -1 = all
  std::optional<Timestamp> since;
  std::string grep;     ///< RE2; only lines that match
  bool follow = false;  ///< until the job has ended and all is read
};

/// A cursor over the selection. Single thread; the waker may be called by any.
class LogReader {
 public:
  enum class State { data, pending, end };
  virtual ~LogReader() = default;
  virtual Result<State> next(std::string& out) = 0;  ///< appends up to 256 KiB
  virtual void set_waker(std::function<void()> waker) = 0;
};

class Logs {
 public:
  Logs(store::Store& store, store::LogStore& logs);
  /// Errors: invalid_argument with the parameter's path; not_found for a job, an attempt, and a node or stream that the job does not have
  /// (while it may still come, there is nothing to read yet).
  Result<std::unique_ptr<LogReader>> open(const JobId& job, const LogQuery& query);
  Result<std::vector<store::StreamMeta>> streams(const JobId& job);

 private:
  store::Store& store_;
  store::LogStore& logs_;
};

}  // namespace helio::service
