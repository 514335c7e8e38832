#pragma once
#include "model/cluster.h"
#include "model/job.h"

#include <functional>
#include <string>
#include <vector>

namespace helio::cli {

/// Turns snapshots of a job into lines that say each stage once, as it is reached. Pure but for its output. One thread.
class Progress {
 public:
  using Write = std::function<void(const std::string& line)>;
  explicit Progress(Write write) : write_(std::move(write)) {}
  void update(const model::Job& job, const std::vector<model::Attempt>& attempts);
  /// A stage that takes long: says what is being waited for, at most once per `quiet` without another line.
  void tick(Timestamp now, Duration quiet);

 private:
  void say(const std::string& line, Timestamp at);

  Write write_;
  std::vector<std::size_t> shown_marks_;  ///< per attempt
  std::string shown_reason_;
  std::string waiting_for_;
  Timestamp last_line_{};
  Timestamp start_{};
};

}  // namespace helio::cli
