#include "provider/fake/world.h"

#include "provider/fake/world_impl.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::provider {
namespace {

constexpr std::int32_t kFirstPort = 12'000;
constexpr std::int32_t kPortBlock = 100;
constexpr std::int32_t kPortBlocks = 200;
constexpr Duration kResend = 3s;
constexpr Duration kShipEvery = 100ms;

}  // namespace

World::World(VirtualTime& time, std::uint64_t seed, Trouble trouble, WorldDefects defects)
    : time_(time), rng_(seed), trouble_(trouble), defects_(defects) {}

World::~World() = default;

World::Agent* World::find(const NodeId& node) {
  const auto found = agents_.find(node);
  return found == agents_.end() ? nullptr : found->second.get();
}

const World::Agent* World::find(const NodeId& node) const {
  const auto found = agents_.find(node);
  return found == agents_.end() ? nullptr : found->second.get();
}

World::Ray& World::ray_of(const Agent& agent) {
  ClusterId cluster = agent.spec.assignment.cluster;
  if (agent.submitter()) {
    for (const auto& [id, other] : agents_) {
      if (other->head() && !other->submitter() && other->spec.assignment.address == agent.spec.assignment.head_address) {
        cluster = other->spec.assignment.cluster;
      }
    }
  }
  auto& ray = rays_[cluster];
  if (!ray) ray = std::make_unique<Ray>();
  return *ray;
}

World::Driver& World::driver_of(const Agent& agent) { return ray_of(agent).drivers[agent.attempt()]; }

bool World::driver_runs(const AttemptId& attempt) const {
  return std::ranges::any_of(rays_, [&](const auto& entry) {
    const auto found = entry.second->drivers.find(attempt);
    return found != entry.second->drivers.end() && found->second.runs != 0;
  });
}

Duration World::between(Duration low, Duration high) {
  return low + Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>((high - low).count()) + 1)));
}

Duration World::latency() { return rng_.chance(trouble_.late) ? between(200ms, 3s) : between(1ms, 20ms); }

void World::later(const NodeId& node, Duration delay, std::function<void(Agent&)> task) {
  const Agent* agent = find(node);
  if (agent == nullptr) return;
  time_.after(delay, [this, node, life = agent->life, task = std::move(task)] {
    Agent* now = find(node);
    if (now != nullptr && now->life == life && now->alive) task(*now);
  });
}

// --- the provider's side --------------------------------------------------------------------------------------------------------

Result<NodePlan> World::plan_node(std::int32_t slot, std::int32_t index, const std::vector<std::int32_t>& taken) {
  NodePlan plan;
  plan.temp_dir = fmt::format("/tmp/hs0/{}/{}", slot, index);
  plan.head_temp_dir = fmt::format("/tmp/hs0/{}/0", slot);
  plan.work_dir = fmt::format("/sim/{}/{}", slot, index);
  plan.ray_token_file = plan.work_dir + "/ray.token";
  plan.address = fmt::format("127.30.{}.{}", slot % 256, index + 2);
  plan.head_address = fmt::format("127.30.{}.2", slot % 256);
  for (std::int32_t block = 0; block < kPortBlocks; ++block) {
    const std::int32_t base = kFirstPort + block * kPortBlock;
    const bool is_taken = !defects_.same_ports && std::ranges::find(taken, base) != taken.end();
    const bool is_used = !defects_.same_ports && std::ranges::any_of(agents_, [&](const auto& entry) {
      return entry.second->alive && entry.second->spec.assignment.port_base == base;
    });
    if (is_taken || is_used) continue;
    plan.port_base = base;
    plan.head_port_base = index == 0 || taken.empty() ? base : taken[taken.size() - static_cast<std::size_t>(index)];
    return plan;
  }
  return fail(ErrorCode::resource_exhausted, "no free ports");
}

void World::check_one_attempt(const NodeSpec& spec) {
  const std::string attempt = spec.assignment.attempt.value;
  const std::string job = attempt.substr(0, attempt.rfind('-'));
  for (const auto& [id, agent] : agents_) {
    const std::string other = agent->attempt().value;
    if (agent->alive && other != attempt && other.substr(0, other.rfind('-')) == job) {
      breaches_.push_back(fmt::format("invariant 2: {} is made while {} of attempt {} lives", spec.assignment.node.value, id.value, other));
    }
  }
}

Result<void> World::ensure(const NodeSpec& spec) {
  const NodeId id = spec.assignment.node;
  if (Agent* known = find(id)) {
    tell(id, known->fact);
    return {};
  }
  check_one_attempt(spec);
  const bool fails = rng_.chance(trouble_.ensure_fails);
  if (fails && rng_.chance(0.5)) return fail(ErrorCode::unavailable, "clone3: no more processes");
  auto& agent = *agents_.emplace(id, std::make_unique<Agent>(spec, rng_.next())).first->second;
  agent.fact.at = time_.now();
  if (fails) {
    // Half made: its folder stays until it is removed.
    agent.alive = false;
    agent.fact.state = model::ProviderState::ended;
    agent.fact.cause = model::cause::kProviderFailed;
    agent.fact.detail = "mount: no space";
    tell(id, agent.fact);
    return {};
  }
  agent.fact.state = model::ProviderState::running;
  tell(id, agent.fact);
  if (agent.head() && !agent.submitter()) ray_of(agent).head = id;
  agent.machine.assign(spec.assignment);
  later(id, between(5ms, 300ms), [this](Agent& born) {
    write_log(born, 100);
    step(born);
    dial(born.id(), Duration(0));
  });
  if (rng_.chance(trouble_.brain_restart)) later(id, between(1s, 20s), [this](Agent& old) { restart_brain(old); });
  return {};
}

Result<void> World::remove(const NodeId& node) {
  Agent* agent = find(node);
  if (agent == nullptr) {
    model::ProviderFact absent;
    absent.state = model::ProviderState::absent;
    absent.at = time_.now();
    tell(node, absent);
    return {};
  }
  if (!agent->alive) {
    tell(node, agent->fact);
    time_.after(between(1ms, 100ms), [this, node, life = agent->life] {
      const Agent* dead = find(node);
      if (dead != nullptr && dead->life == life) agents_.erase(node);
    });
    return {};
  }
  if (agent->frozen) return {};
  agent->frozen = true;
  if (defects_.early_proof) {
    model::ProviderFact early = agent->fact;
    early.state = model::ProviderState::ended;
    early.at = time_.now();
    tell(node, early);
  }
  const Duration slow = rng_.chance(0.1) ? between(3s, 20s) : between(20ms, 2s);
  later(node, slow, [this](Agent& victim) {
    const NodeId id = victim.id();
    exit_agent(victim, "ended by the provider", 137, "");
    static_cast<void>(remove(id));
  });
  return {};
}

std::vector<NodeFact> World::list() const {
  std::vector<NodeFact> out;
  for (const auto& [id, agent] : agents_) out.push_back({id, agent->fact});
  return out;
}

std::vector<model::Host> World::capacity() const {
  std::vector<model::Host> out = hosts_;
  if (defects_.double_capacity) {
    for (model::Host& host : out) host.capacity += model::Resources(host.capacity);
  }
  return out;
}

std::vector<std::string> World::sweep(const std::vector<NodeId>& live) {
  std::vector<std::string> found;
  if (defects_.sweep_nothing) return found;
  std::vector<NodeId> orphans;
  for (const auto& [id, agent] : agents_) {
    if (std::ranges::find(live, id) == live.end()) orphans.push_back(id);
  }
  for (const NodeId& id : orphans) {
    if (Agent* agent = find(id); agent->alive) exit_agent(*agent, "swept", 137, "");
    agents_.erase(id);
    found.push_back("node " + id.value);
  }
  return found;
}

std::uint64_t World::add_observer(Observer observer) {
  observers_.emplace(++last_observer_, std::move(observer));
  return last_observer_;
}

void World::tell(const NodeId& node, const model::ProviderFact& fact) {
  const int times = rng_.chance(trouble_.doubled) ? 2 : 1;
  for (const auto& [observer, unused] : observers_) {
    for (int i = 0; i < times; ++i) {
      time_.after(between(1ms, 100ms), [this, id = observer, node, fact] {
        const auto found = observers_.find(id);
        if (found != observers_.end() && found->second) found->second(node, fact);
      });
    }
  }
}

std::optional<World::Remains> World::remains(const NodeId& node) const {
  const Agent* agent = find(node);
  if (agent == nullptr) return std::nullopt;
  return Remains{agent->machine.status(), agent->written};
}

// --- connections ----------------------------------------------------------------------------------------------------------------

void World::attach(AgentPort* port) {
  port_ = port;
  ++port_epoch_;
  for (auto& [id, agent] : agents_) {
    agent->connected = false;
    agent->reported = false;
    agent->shipping = false;
    agent->facts.daemon_connected = false;
    if (port_ != nullptr && agent->alive) dial(id, between(10ms, 2s));
  }
}

void World::dial(const NodeId& node, Duration delay) {
  later(node, delay, [this](Agent& agent) {
    if (agent.connected || port_ == nullptr) return;
    if (agent.away_until > time_.mono()) return dial(agent.id(), agent.away_until - time_.mono());
    agent.connected = true;
    agent.reported = false;
    const std::uint64_t life = agent.life;
    const NodeId id = agent.id();
    if (!port_->connection(id, true)) {
      agent.connected = false;
      return dial(id, 1s);
    }
    const auto assignment = port_->assignment(id);
    Agent* same = find(id);
    if (same == nullptr || same->life != life) return;
    agent.facts.daemon_connected = true;
    if (assignment) agent.machine.assign(*assignment);
    agent.sent = 0;
    step(agent);
    ship(agent);
  });
}

void World::hang_up(Agent& agent) {
  if (!agent.connected) return;
  agent.connected = false;
  agent.shipping = false;
  agent.facts.daemon_connected = false;
  agent.reported = true;
  // The daemon notices later, unless the agent is back by then.
  time_.after(between(1ms, 2s), [this, id = agent.id(), epoch = port_epoch_] {
    const Agent* now = find(id);
    if (port_ == nullptr || port_epoch_ != epoch) return;
    if (now != nullptr && now->connected) return;
    port_->connection(id, false);
  });
  dial(agent.id(), between(50ms, 2s));
}

void World::send(Agent& agent) {
  const model::AgentStatus& status = agent.machine.status();
  if (!agent.connected || port_ == nullptr || status.sequence <= agent.sent) return;
  agent.sent = status.sequence;
  if (rng_.chance(trouble_.disconnect)) {
    if (!defects_.forget_unsent) return hang_up(agent);
    agent.recorded = status.sequence;
    return;
  }
  const int times = rng_.chance(trouble_.doubled) ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    time_.after(latency(), [this, status, epoch = port_epoch_] {
      if (port_ == nullptr || port_epoch_ != epoch || !port_->status(status)) return;
      if (Agent* now = find(status.node)) now->recorded = std::max(now->recorded, status.sequence);
    });
  }
  resend_later(agent);
}

void World::resend_later(Agent& agent) {
  if (agent.resending) return;
  agent.resending = true;
  later(agent.id(), kResend, [this](Agent& same) {
    same.resending = false;
    if (!same.connected || same.recorded >= same.machine.status().sequence) return;
    same.sent = same.recorded;
    send(same);
    resend_later(same);
  });
}

void World::push(const NodeId& node, const model::Assignment& assignment) {
  Agent* agent = find(node);
  if (agent == nullptr || !agent->alive || !agent->connected) return;
  if (rng_.chance(trouble_.disconnect)) return hang_up(*agent);
  later(node, latency(), [this, assignment](Agent& same) {
    if (same.connected && same.machine.assign(assignment)) step(same);
  });
}

void World::write_log(Agent& agent, std::int64_t bytes) {
  if (agent.frozen || !agent.alive) return;
  agent.written += bytes;
  log_written_[agent.id()] = agent.written;
  ship(agent);
}

void World::ship(Agent& agent) {
  if (agent.shipping || !agent.connected || agent.shipped >= agent.written) return;
  agent.shipping = true;
  later(agent.id(), between(Duration(1ms), kShipEvery), [this](Agent& same) {
    same.shipping = false;
    if (!same.connected || port_ == nullptr) return;
    const std::int64_t size = same.written;
    if (!port_->logs(same.id(), size)) {
      return later(same.id(), 1s, [this](Agent& again) { ship(again); });
    }
    same.shipped = std::max(same.shipped, size);
    ship(same);
    step(same);
  });
}

void World::restart_brain(Agent& agent) {
  restarted_.insert(agent.id());
  const model::Assignment assignment = agent.machine.assignment();
  node::Journal journal = agent.journal;
  journal.sequence = agent.machine.status().sequence;
  journal.generation = assignment.generation;
  agent.machine = node::Machine(agent.id(), "sim", journal);
  agent.machine.assign(assignment);
  if (agent.facts.post == node::Facts::Post::pending) agent.facts.post = node::Facts::Post::unclear;
  agent.finishing = false;
  if (agent.connected) hang_up(agent);
  step(agent);
}

// --- what really happened -------------------------------------------------------------------------------------------------------

std::vector<NodeId> World::present() const {
  std::vector<NodeId> out;
  for (const auto& [id, agent] : agents_) out.push_back(id);
  return out;
}

bool World::alive(const NodeId& node) const {
  const Agent* agent = find(node);
  return agent != nullptr && agent->alive;
}

bool World::reachable(const NodeId& node) const {
  const Agent* agent = find(node);
  return agent != nullptr && agent->alive && agent->connected;
}

std::int64_t World::log_written(const NodeId& node) const {
  const auto found = log_written_.find(node);
  return found == log_written_.end() ? 0 : found->second;
}

std::optional<MonoTime> World::driver_ended(const AttemptId& attempt) const {
  const auto found = driver_ended_.find(attempt);
  if (found == driver_ended_.end()) return std::nullopt;
  return found->second;
}

}  // namespace helio::provider
