// What Ray and the kernel do in a World: start, run the entrypoint, die.

#include "provider/fake/world_impl.h"

#include <fmt/format.h>
#include <algorithm>
#include <variant>

namespace helio::provider {

using node::Facts;
using node::ProcessFact;
namespace action = node::action;

void World::step(Agent& agent) {
  constexpr int kStepsAtOnce = 50;
  for (int i = 0; i < kStepsAtOnce && agent.alive; ++i) {
    agent.facts.now = time_.now();
    agent.facts.mono = time_.mono();
    agent.facts.logs_shipped = agent.finishing && agent.shipped >= agent.written;
    const node::Step result = agent.machine.step(agent.facts);
    agent.journal = agent.machine.journal();
    // Before anything is done about it: a report that leads to an exit is still sent.
    send(agent);
    for (const node::Action& what : result.actions) act(agent, what);
    if (!agent.alive) return;
    if (result.again && *result.again == Duration(0)) continue;
    if (agent.again) time_.cancel(*agent.again);
    agent.again.reset();
    if (result.again) {
      agent.again = time_.after(*result.again, [this, id = agent.id(), life = agent.life] {
        Agent* same = find(id);
        if (same == nullptr || same->life != life || !same->alive) return;
        same->again.reset();
        step(*same);
      });
    }
    return;
  }
}

void World::act(Agent& agent, const node::Action& what) {
  if (std::holds_alternative<action::StartRay>(what)) {
    start_ray(agent);
  } else if (std::holds_alternative<action::WatchCluster>(what)) {
    // A node's own cluster tells of itself; a submitter comes to one that may have nothing new to tell.
    if (agent.submitter()) later(agent.id(), between(1ms, 100ms), [this](Agent& same) { spread(ray_of(same)); });
  } else if (std::holds_alternative<action::SubmitDriver>(what)) {
    submit(agent);
  } else if (const auto* stop = std::get_if<action::StopDriver>(&what)) {
    const Script script = scripts_(agent.attempt());
    const Duration grace = agent.machine.assignment().stop_grace.d;
    const Duration takes = stop->kill ? 20ms : script.stubborn ? grace : between(20ms, 500ms);
    later(agent.id(), takes, [this, driver = driver_of(agent).runs](Agent& head) {
      if (driver != 0 && driver_of(head).runs == driver) end_driver(head, "STOPPED", std::nullopt);
    });
  } else if (const auto* drain = std::get_if<action::DrainNode>(&what)) {
    later(drain->node, between(20ms, 20s), [this](Agent& worker) {
      if (!worker.facts.raylet || !worker.facts.raylet->running) return;
      worker.facts.raylet = ProcessFact{false, 0};
      Ray& ray = ray_of(worker);
      ray.alive.erase(worker.id());
      ray.dead.insert(worker.id());
      spread(ray);
    });
  } else if (std::holds_alternative<action::SignalRay>(what)) {
    later(agent.id(), between(50ms, 2s), [this](Agent& same) { end_ray(same, 1); });
  } else if (std::holds_alternative<action::KillAll>(what)) {
    later(agent.id(), between(1ms, 50ms), [this](Agent& same) { end_ray(same, 137); });
  } else if (std::holds_alternative<action::FinishStreams>(what)) {
    write_log(agent, 10);
    agent.finishing = true;
  } else if (const auto* leave = std::get_if<action::Exit>(&what)) {
    exit_agent(agent, fmt::format("exit {}", leave->code), leave->code, "");
  }
}

void World::spread(Ray& ray) {
  for (auto& [id, agent] : agents_) {
    if (!agent->alive || &ray_of(*agent) != &ray) continue;
    Facts& facts = agent->facts;
    facts.gcs_port_open = ray.gcs;
    if (agent->head()) {
      facts.api_up = ray.api;
      facts.head_agent_up = ray.agent;
      facts.rows_alive.assign(ray.alive.begin(), ray.alive.end());
      facts.rows_dead.assign(ray.dead.begin(), ray.dead.end());
      const Driver& driver = ray.drivers[agent->attempt()];
      if (agent->machine.assignment().watch_idle.d > Duration(0) && ray.agent) {
        if (!facts.cluster_busy) {
          // Somebody works in it for a while.
          ray.visited = true;
          later(id, between(1s, 30s), [this](Agent& head) {
            ray_of(head).visited = false;
            spread(ray_of(head));
          });
        }
        facts.cluster_busy = ray.visited || std::ranges::any_of(ray.drivers, [](const auto& entry) { return entry.second.runs != 0; });
      }
      facts.driver_known = driver.known && ray.api;
      facts.driver_ray_status = driver.status;
      facts.driver_exit_code = driver.exit_code;
      facts.driver_message = driver.message;
      facts.driver_first_line = driver.first_line;
      facts.driver_log_complete = driver.known && driver.runs == 0 && !driver.status.empty();
      if (driver.known) facts.driver_absent = false;
    }
    later(id, Duration(1), [this](Agent& same) { step(same); });
  }
}

void World::start_ray(Agent& agent) {
  agent.facts.ray_start = ProcessFact{true, {}};
  agent.facts.processes_left = true;
  write_log(agent, 200);
  if (rng_.chance(trouble_.ray_fails)) {
    later(agent.id(), between(100ms, 3s), [this](Agent& same) {
      same.facts.start_log_tail = "something went wrong";
      write_log(same, 50);
      end_ray(same, 1);
    });
    return;
  }
  if (!agent.head()) {
    later(agent.id(), between(500ms, 5s), [this](Agent& same) { ray_up(same); });
    return;
  }
  later(agent.id(), between(300ms, 2s), [this](Agent& head) {
    if (!head.facts.processes_left) return;
    ray_of(head).gcs = true;
    head.facts.gcs = ProcessFact{true, {}};
    spread(ray_of(head));
    later(head.id(), between(500ms, 3s), [this](Agent& same) {
      if (!same.facts.processes_left) return;
      ray_of(same).api = true;
      same.facts.dashboard = ProcessFact{true, {}};
      ray_up(same);
      later(same.id(), between(100ms, 2s), [this](Agent& ready) {
        if (!ready.facts.processes_left) return;
        ray_of(ready).agent = true;
        spread(ray_of(ready));
      });
    });
  });
}

void World::ray_up(Agent& agent) {
  if (!agent.facts.processes_left) return;
  agent.facts.raylet = ProcessFact{true, {}};
  ray_of(agent).alive.insert(agent.id());
  spread(ray_of(agent));
}

void World::submit(Agent& agent) {
  agent.facts.post = Facts::Post::pending;
  agent.facts.driver_absent = false;
  const bool unclear = rng_.chance(trouble_.post_unclear);
  const bool arrives = !unclear || rng_.chance(0.7);
  later(agent.id(), between(10ms, 150ms), [this, unclear, arrives](Agent& head) {
    if (arrives) arrive(head);
    if (unclear && defects_.submit_twice) run_driver(head);
    head.facts.post = unclear ? Facts::Post::unclear : Facts::Post::accepted;
    if (!arrives) {
      later(head.id(), between(100ms, 500ms), [this](Agent& same) {
        same.facts.driver_absent = !driver_of(same).known;
        step(same);
      });
    }
    step(head);
  });
}

void World::arrive(Agent& agent) {
  Driver& driver = driver_of(agent);
  if (driver.known || !ray_of(agent).api) return;
  driver.known = true;
  driver.status = "PENDING";
  driver.runs = rng_.next() | 1U;
  spread(ray_of(agent));
  later(agent.id(), between(300ms, 2s), [this, runs = driver.runs](Agent& head) {
    if (driver_of(head).runs == runs) run_driver(head);
  });
}

void World::run_driver(Agent& agent) {
  Driver& driver = driver_of(agent);
  const Script script = scripts_(agent.attempt());
  if (++starts_[agent.attempt()] > 1) {
    breaches_.push_back(
        fmt::format("invariant 2: the entrypoint of {} was started {} times", agent.attempt().value, starts_[agent.attempt()]));
  }
  driver.status = "RUNNING";
  driver.first_line = true;
  if (agent.submitter()) agent.facts.processes_left = true;  // on its leash
  write_log(agent, 500);
  spread(ray_of(agent));
  if (script.hangs) return;
  later(agent.id(), script.run, [this, runs = driver.runs, code = script.exit_code](Agent& head) {
    if (driver_of(head).runs == runs) end_driver(head, code == 0 ? "SUCCEEDED" : "FAILED", code);
  });
}

void World::end_driver(Agent& agent, const std::string& status, std::optional<std::int32_t> exit_code) {
  Driver& driver = driver_of(agent);
  if (driver.runs == 0) return;
  driver.runs = 0;
  driver.status = status;
  driver.exit_code = exit_code;
  if (agent.submitter()) agent.facts.processes_left = false;
  driver.message = exit_code && *exit_code != 0 ? fmt::format("Job entrypoint command failed with exit code {}", *exit_code) : "";
  driver_ended_[agent.attempt()] = time_.mono();
  write_log(agent, 300);
  spread(ray_of(agent));
}

void World::drop_driver(Ray& ray, const AttemptId& attempt) {
  const auto found = ray.drivers.find(attempt);
  if (found == ray.drivers.end()) return;
  if (found->second.runs != 0) driver_ended_.try_emplace(attempt, time_.mono());
  found->second.runs = 0;
}

void World::end_ray(Agent& agent, std::int32_t exit_code) {
  if (!agent.facts.processes_left) return;
  if (agent.submitter()) return end_driver(agent, "FAILED", exit_code);
  Facts& facts = agent.facts;
  facts.processes_left = false;
  for (auto* process : {&facts.ray_start, &facts.raylet, &facts.gcs, &facts.dashboard}) {
    if (*process && (*process)->running) *process = ProcessFact{false, exit_code};
  }
  write_log(agent, 20);
  fall(agent);
}

/// Ray of this node is gone; the cluster feels it.
void World::fall(Agent& agent) {
  Ray& ray = ray_of(agent);
  ray.alive.erase(agent.id());
  if (agent.head()) {
    ray.gcs = ray.api = ray.agent = false;
    driver_ended_.try_emplace(agent.attempt(), time_.mono());
    for (auto& [attempt, driver] : ray.drivers) drop_driver(ray, attempt);
    for (const auto& [id, other] : agents_) {
      if (id == agent.id() || &ray_of(*other) != &ray) continue;
      if (other->submitter()) {
        other->facts.processes_left = false;
        continue;
      }
      later(id, between(2s, 60s), [this](Agent& worker) { end_ray(worker, 1); });
    }
  } else if (ray.dead.insert(agent.id()).second) {
    for (const auto& [attempt, driver] : ray.drivers) {
      if (driver.runs == 0 || !rng_.chance(0.5)) continue;
      for (const auto& [id, other] : agents_) {
        if (!other->head() || other->attempt() != attempt) continue;
        later(id, between(100ms, 2s), [this, runs = driver.runs](Agent& same) {
          if (driver_of(same).runs == runs) end_driver(same, "FAILED", 1);
        });
      }
    }
  }
  spread(ray);
  later(agent.id(), Duration(1), [this](Agent& same) { step(same); });
}

void World::exit_agent(Agent& agent, std::string detail, std::optional<std::int32_t> exit_code, std::string cause) {
  if (!agent.alive) return;
  const bool had_ray = agent.facts.processes_left;
  agent.facts.processes_left = false;
  if (agent.connected) hang_up(agent);
  agent.alive = false;
  agent.connected = false;
  agent.fact.state = model::ProviderState::ended;
  agent.fact.detail = std::move(detail);
  agent.fact.exit_code = exit_code;
  agent.fact.cause = std::move(cause);
  agent.fact.at = time_.now();
  if (agent.submitter()) {
    if (!defects_.no_leash) drop_driver(ray_of(agent), agent.attempt());
    spread(ray_of(agent));
  } else if (had_ray) {
    fall(agent);
  }
  tell(agent.id(), agent.fact);
}

// --- faults ---------------------------------------------------------------------------------------------------------------------

bool World::strike(Blow blow) {
  std::vector<NodeId> targets;
  for (const auto& [id, agent] : agents_) {
    const bool of_head = blow == Blow::gcs || blow == Blow::driver;
    const bool of_ray = blow != Blow::agent && blow != Blow::driver;
    const bool fits = (!of_head || agent->head()) && !(of_ray && agent->submitter());
    const bool has_ray = agent->facts.processes_left || blow == Blow::agent;
    const bool has_driver = blow != Blow::driver || driver_of(*agent).status == "RUNNING";
    if (agent->alive && fits && has_ray && has_driver) targets.push_back(id);
  }
  if (targets.empty()) return false;
  Agent& agent = *find(targets[rng_.below(targets.size())]);
  Facts& facts = agent.facts;
  const auto kill = [&](std::optional<ProcessFact>& process) {
    if (process && process->running) process = ProcessFact{false, 137};
  };
  switch (blow) {
    case Blow::agent:
      exit_agent(agent, "signal 9", 137, "");
      return true;
    case Blow::driver:
      end_driver(agent, "FAILED", 137);
      return true;
    case Blow::raylet:
      kill(facts.raylet);
      break;
    case Blow::gcs:
      kill(facts.gcs);
      break;
    case Blow::ray_start:
      end_ray(agent, 137);
      return true;
    case Blow::out_of_memory:
      ++facts.oom_kills;
      kill(facts.raylet);
      break;
  }
  step(agent);
  later(agent.id(), between(300ms, 1s), [this](Agent& same) { end_ray(same, 1); });
  return true;
}

bool World::partition(Duration length) {
  std::vector<NodeId> targets;
  for (const auto& [id, agent] : agents_) {
    if (agent->alive && agent->connected) targets.push_back(id);
  }
  if (targets.empty()) return false;
  Agent& agent = *find(targets[rng_.below(targets.size())]);
  agent.away_until = time_.mono() + length;
  hang_up(agent);
  return true;
}

void World::reboot() {
  for (auto& [id, agent] : agents_) {
    if (!agent->alive) continue;
    agent->facts.processes_left = false;
    exit_agent(*agent, "boot id differs", std::nullopt, std::string(model::cause::kHostReboot));
    drop_driver(ray_of(*agent), agent->attempt());
    driver_ended_.try_emplace(agent->attempt(), time_.mono());
  }
}

}  // namespace helio::provider
