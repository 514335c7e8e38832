#pragma once
#include "model/cluster.h"
#include "model/job.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace helio::cli {

/// Turns snapshots of a job into lines that say each stage once, as it is reached. Pure but for its output. One thread.
class Progress {
 public:
  using Write = std::function<void(const std::string& line)>;
  explicit Progress(Write write) : write_(std::move(write)) {}
  void update(const model::Job& job, const std::vector<model::Attempt>& attempts, Timestamp now);
  /// Says why a job is queued once it has been for a second, and in a stage that takes long what is being waited for, at most once per
  /// `quiet` without another line.
  void tick(Timestamp now, Duration quiet);

 private:
  void say(const std::string& line, Timestamp at);
  void say_marks(const model::Attempt& attempt, std::set<std::string>& shown);
  void say_queued(Timestamp now);

  Write write_;
  std::vector<std::set<std::string>> shown_marks_;  ///< per attempt
  std::string shown_reason_;
  std::string queued_for_;  ///< reason that is told when the queue takes longer than a moment
  Timestamp queued_since_{};
  std::string waiting_for_;
  Timestamp last_line_{};
  Timestamp start_{};
};

}  // namespace helio::cli
