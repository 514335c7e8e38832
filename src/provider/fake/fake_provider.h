#pragma once
#include "provider/fake/world.h"
#include "provider/provider.h"

namespace helio::provider {

/// One daemon's handle on a World, which outlives it.
class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(World& world) : world_(world) {}
  ~FakeProvider() override { world_.remove_observer(observer_); }
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;

  Result<NodePlan> plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) override {
    return world_.plan_node(slot, index, taken);
  }
  Result<void> ensure(const NodeSpec& spec) override { return world_.ensure(spec); }
  Result<void> remove(const NodeId& node, Grace) override { return world_.remove(node); }
  Result<std::vector<NodeFact>> list() override { return world_.list(); }
  Result<std::vector<model::Host>> capacity() override { return world_.capacity(); }
  void observe(Observer observer) override {
    world_.remove_observer(observer_);
    observer_ = world_.add_observer(std::move(observer));
  }
  Result<std::vector<std::string>> sweep(const std::vector<NodeId>& live) override { return world_.sweep(live); }

 private:
  World& world_;
  std::uint64_t observer_ = 0;
};

}  // namespace helio::provider
