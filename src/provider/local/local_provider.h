#pragma once
// The local backend: nodes are processes of this host, each in its own PID and mount namespace as far as the host allows.

#include "base/clock.h"
#include "model/home.h"
#include "model/settings.h"
#include "proc/cgroup.h"
#include "proc/namespaces.h"
#include "provider/provider.h"
#include "rt/event_loop.h"

#include <memory>
#include <optional>
#include <string>

namespace helio::provider {

/// What tests replace; the defaults are what the host has.
struct LocalOptions {
  std::optional<proc::Isolation> isolation;
  std::unique_ptr<proc::CgroupDriver> cgroups;
  std::string boot_id;
  Duration harvest_limit{20s};
  Duration sweep_spares{10s};  ///< a node asked for so recently is left alone by sweep(): its caller's list may be older
};

/// Finds its nodes again by their folders: constructing it is how a restarted daemon takes over. Destroy it before the loop; the
/// observer is called until the destructor returns. Any thread.
class LocalProvider final : public Provider {
 public:
  /// `agent`: path of the helio-agent program. Never fails: what is broken shows in capacity(), plan_node() and facts.
  LocalProvider(rt::EventLoop& loop, const Clock& clock, model::Home home, model::PoolSettings settings, std::string agent,
                LocalOptions options = {});
  ~LocalProvider() override;

  Result<NodePlan> plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) override;
  Result<void> ensure(const NodeSpec& spec) override;
  Result<void> remove(const NodeId& node, Grace grace) override;
  Result<std::vector<NodeFact>> list() override;
  Result<std::vector<model::Host>> capacity() override;
  void observe(Observer observer) override;
  std::optional<model::AgentStatus> final_status(const NodeId& node) override;
  Result<std::vector<std::string>> sweep(const std::vector<NodeId>& live) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helio::provider
