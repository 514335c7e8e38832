#pragma once
// One daemon's life in the simulation: everything that a crash of heliostatd takes with it.

#include "base/rng.h"
#include "base/sealer.h"
#include "control/loop.h"
#include "model/home.h"
#include "model/settings.h"
#include "provider/fake/fake_provider.h"
#include "service/jobs.h"
#include "sim/bugs.h"
#include "store/fault_store.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace helio::sim {

/// Not secret at all, but sealed bytes differ from clear ones, so a clear value in the store is noticed.
class ToySealer final : public Sealer {
 public:
  [[nodiscard]] std::string seal(std::string_view clear) const override;
  [[nodiscard]] Result<std::string> open(std::string_view sealed) const override;
};

/// Log bytes by node; durable over daemons.
class SimLogs final : public store::LogStore {
 public:
  Result<std::int64_t> open(const store::StreamKey&, std::string_view) override { return 0; }
  Result<std::int64_t> append(const store::StreamKey& key, std::int64_t offset, std::string_view bytes, Timestamp now) override;
  Result<void> mark_ended(const store::StreamKey&) override { return {}; }
  Result<void> sync(const std::vector<store::StreamKey>&) override { return {}; }
  Result<store::StreamMeta> stat(const store::StreamKey&) override { return fail(ErrorCode::not_found, "no stream"); }
  Result<std::vector<store::StreamMeta>> list(const AttemptId&) override { return std::vector<store::StreamMeta>{}; }
  Result<std::string> read(const store::StreamKey&, std::int64_t, std::size_t) override { return std::string(); }
  Result<std::int64_t> offset_at(const store::StreamKey&, Timestamp) override { return 0; }
  std::unique_ptr<Watch> watch(const AttemptId&, std::function<void()>) override { return nullptr; }
  Result<void> seal(const AttemptId&) override { return {}; }
  Result<void> remove(const AttemptId&) override { return {}; }
  Result<std::int64_t> total_bytes() override { return 0; }

  void hold(const NodeId& node, std::int64_t size);
  [[nodiscard]] std::int64_t held(const NodeId& node) const;

 private:
  std::map<NodeId, std::int64_t> held_;
};

/// What outlives daemons, by reference.
struct Surroundings {
  provider::VirtualTime& time;
  provider::World& world;
  store::Store& store;  ///< the real one
  SimLogs& logs;
  const Sealer& sealer;
  Rng& rng;
  const model::Settings& settings;
  const model::Home& home;
  std::int64_t& newest_lease;
  std::function<void(std::string)> breach;
  Bug bug = Bug::none;
};

class Daemon final : public provider::AgentPort {
 public:
  /// `fault` is asked at each write; it may throw store::Crash out of anything that the daemon does.
  Daemon(const Surroundings& around, store::FaultStore::Hook fault, int number);
  ~Daemon() override;

  Result<void> start();
  [[nodiscard]] bool ended() const { return ended_; }  ///< it lost its lease
  [[nodiscard]] MonoTime started() const { return started_; }
  service::Jobs& jobs() { return jobs_; }
  BuggyStore& buggy() { return buggy_; }

  bool connection(const NodeId& node, bool connected) override;
  bool status(const model::AgentStatus& status) override;
  bool logs(const NodeId& node, std::int64_t size) override;
  std::optional<model::Assignment> assignment(const NodeId& node) override;

 private:
  void push_changes();
  void salvage(const NodeId& node);

  Surroundings around_;
  BuggyStore buggy_;
  LeaseWitness witness_;
  store::FaultStore faulty_;
  provider::FakeProvider provider_;
  service::Jobs jobs_;
  int number_;
  MonoTime started_;
  bool ended_ = false;
  std::int64_t pushed_ = 0;
  bool push_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<store::Store::Subscription> subscription_;
  std::unique_ptr<control::Loop> loop_;
};

}  // namespace helio::sim
