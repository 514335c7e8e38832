#pragma once
// Where a job's Ray dashboard is, and the token that opens it.

#include "base/sealer.h"
#include "store/store.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace helio::service {

struct Dashboard {
  enum class State {
    none,  ///< there is no cluster: not yet, or not any more
    starting,
    live,
  };
  JobId job;
  std::string owner;
  std::string workspace;
  State state = State::none;
  bool ended = false;   ///< the job is
  std::string address;  ///< live: where it listens
  std::uint16_t port = 0;
  std::string token;  ///< of the cluster; empty when its Ray has none
};

/// Any thread.
class Dashboards {
 public:
  Dashboards(store::Store& store, const Sealer& sealer) : store_(store), sealer_(sealer) {}

  /// Error: not_found for a job.
  Result<std::shared_ptr<const Dashboard>> get(const JobId& job);
  /// From memory alone, without waiting for anybody; nothing when that is not current.
  std::shared_ptr<const Dashboard> known(const JobId& job);

 private:
  struct Entry {
    std::shared_ptr<const Dashboard> dashboard;
    std::int64_t revision = -1;
  };
  [[nodiscard]] bool is_current(const Entry& entry) const;
  Result<Dashboard> read(store::ReadTx& tx, const JobId& id);

  store::Store& store_;
  const Sealer& sealer_;
  std::mutex mutex_;
  std::map<JobId, Entry> kept_;
};

}  // namespace helio::service
