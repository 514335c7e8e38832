#pragma once
// Which nodes and log streams a user means by what was typed. Pure.

#include "base/error.h"
#include "model/job.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace helio::cli {

struct StreamRow {
  std::int64_t attempt = 1;
  std::string node;  ///< head, w1, …
  std::string stream;
  std::string kind;
  std::int64_t size = 0;
  bool ended = false;
};

/// "head" or "w2" of a node's id, which ends with "-h" or "-w2".
std::string short_node(std::string_view node_id);

/// The short name of a node that a job of this shape has; takes short names and ids.
/// Error: not_found naming the nodes that there are.
Result<std::string> choose_node(const model::JobSpec& spec, const std::string& given);

/// Names of streams in `there` that `given` means: that very name, all that match it as a pattern (* ? []), or the only one that begins
/// with it. `elsewhere`: streams of other nodes, named where nothing of `there` fits. `where`: for people, such as "w1".
/// Errors: not_found, conflict when it begins several.
Result<std::vector<std::string>> choose_streams(const std::vector<StreamRow>& there, const std::vector<StreamRow>& elsewhere,
                                                const std::string& where, const std::string& given);

}  // namespace helio::cli
