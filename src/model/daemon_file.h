#pragma once
#include "base/json/json.h"

#include <cstdint>
#include <string>

namespace helio::model {

/// <home>/daemon.json: where the running daemon is, for the CLI and for agents; after its end, where it was.
struct DaemonFile {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< with the boot id, tells whether `pid` is still that process
  std::string boot_id;
  std::string url;  ///< http://127.0.0.1:port
  std::string version;
  friend bool operator==(const DaemonFile&, const DaemonFile&) = default;
};

}  // namespace helio::model

HELIO_JSON(helio::model::DaemonFile)
