#include "control/scheduling.h"

#include "base/hash.h"
#include "base/log.h"
#include "control/controllers.h"
#include "model/gang.h"

#include <fmt/format.h>
#include <algorithm>

namespace helio::control {
namespace {

constexpr std::size_t kFront = 32;  ///< gangs looked at in one go; more are looked at when all of them are admitted
constexpr std::int32_t kSlots = 250;
constexpr Duration kPlanAgain = 2s;
constexpr int kTokenBytes = 32;

NodeId node_id(const AttemptId& attempt, const model::Placement& place) {
  return NodeId(place.role == model::Role::head ? attempt.value + "-h" : fmt::format("{}-w{}", attempt.value, place.index));
}

bool is_growing(const Aggregate& aggregate) { return aggregate.attempt && aggregate.cluster && aggregate.job->growing_since; }

Result<std::vector<model::Member>> missing_of(const Aggregate& aggregate, const std::map<std::string, model::Flavor>& flavors) {
  std::vector<const model::Node*> nodes;
  for (const auto& [index, node] : aggregate.nodes) nodes.push_back(&node);
  return model::members_missing(aggregate.job->spec, nodes, flavors);
}

/// Why one waits, where people look for it: of a cluster that runs and grows that is not the job's own reason.
void say(SchedulingOutcome& out, const Aggregate& aggregate, std::string reason, Timestamp now) {
  Transaction tx;
  const JobId& id = aggregate.job->id;
  if (is_growing(aggregate)) {
    reason = std::string(kWaitsForRoom) + ": " + reason;
    if (aggregate.cluster->reason == reason) return;
    model::Cluster cluster = *aggregate.cluster;
    cluster.reason = reason;
    tx.puts.push_back({std::move(cluster), control_event(now, id, "cluster.reason", reason)});
  } else {
    if (aggregate.job->reason == reason) return;
    model::Job job = *aggregate.job;
    job.reason = reason;
    tx.puts.push_back({std::move(job), control_event(now, id, "job.reason", reason)});
  }
  out.reasons.push_back(std::move(tx));
}

}  // namespace

std::int32_t Scheduling::take_slot(std::set<std::int32_t>& used) {
  std::int32_t slot = last_slot_;
  for (std::int32_t i = 0; i < kSlots; ++i) {
    slot = slot % kSlots + 1;
    if (!used.contains(slot)) break;
  }
  while (used.contains(slot)) ++slot;  // more live clusters than short slots
  used.insert(slot);
  last_slot_ = slot <= kSlots ? slot : last_slot_;
  return slot;
}

SchedulingOutcome Scheduling::step(const View& view, Timestamp now) {
  SchedulingOutcome out;
  sched::State state;
  std::size_t looked_at = 0;
  for (const View::QueueKey& key : view.queue()) {
    if (looked_at == kFront) break;
    const Aggregate* aggregate = view.find(key.job);
    if (aggregate == nullptr || !aggregate->job) continue;
    const model::Job& job = *aggregate->job;
    const bool grows = is_growing(*aggregate);
    if (!grows && (aggregate->attempt || aggregate->cluster)) continue;
    auto members = grows ? missing_of(*aggregate, view.flavors()) : model::members_of(job.spec, view.flavors());
    if (members && members->empty()) continue;
    std::string missing;
    if (!members)
      missing = members.error().message();
    else if (!view.images().contains(job.spec.image))
      missing = fmt::format("no image '{}'", job.spec.image);
    if (!missing.empty()) {
      // Passed over, so that it holds nobody up; it goes on when an administrator brings back what it needs.
      const std::string reason = grows ? missing : fmt::format("waits: {}; it was removed after the job was submitted", missing);
      say(out, *aggregate, reason, now);
      continue;
    }
    // Nothing else comes back to it then.
    if (grows && job.not_before && *job.not_before > now) {
      const Duration until = *job.not_before - now;
      out.again = out.again ? std::min(*out.again, until) : until;
    }
    ++looked_at;
    state.queue.push_back({job.id, job.spec.priority, key.since, job.not_before, std::move(*members)});
  }
  if (state.queue.empty()) return out;
  state.hosts = view.host_views();
  const sched::Plan plan = sched::plan_admissions(state, now);

  std::set<std::int32_t> slots = view.slots();
  std::vector<std::int32_t> ports = view.port_bases();
  for (const sched::Admission& admission : plan.admit) {
    const Aggregate& aggregate = *view.find(admission.job);
    const model::Job& job = *aggregate.job;
    const bool grows = is_growing(aggregate);
    auto admitted = grows ? grow(aggregate, admission.placement, ports, now)
                          : admit(job, view.images().at(job.spec.image), admission.placement, slots, ports, now);
    if (!admitted) {
      const std::string reason = fmt::format("waits: {}", admitted.error().message());
      say(out, aggregate, reason, now);
      out.again = kPlanAgain;
      if (grows) continue;  // what it had been given stays free for now
      return out;
    }
    out.admissions.push_back(std::move(*admitted));
  }
  for (const sched::Refusal& refusal : plan.wait) {
    if (refusal.position != 1) continue;
    const model::Job& job = *view.find(refusal.job)->job;
    out.blocked = View::queue_key(job);
    say(out, *view.find(refusal.job), "next in the queue: " + refusal.message, now);
  }
  return out;
}

Result<std::vector<Put>> Scheduling::make_nodes(const model::Attempt& attempt, const model::Cluster& cluster,
                                                const std::vector<model::Placement>& placement, std::int32_t head_port_base,
                                                std::vector<std::int32_t>& ports, Timestamp now, Admission& out) {
  std::vector<Put> rows;
  for (const model::Placement& place : placement) {
    HELIO_TRY(plan, provider_.plan_node(cluster.slot, place.index, ports));
    if (head_port_base != 0) plan.head_port_base = head_port_base;
    ports.push_back(plan.port_base);
    model::Node node;
    node.id = node_id(attempt.id, place);
    node.cluster = cluster.id;
    node.attempt = attempt.id;
    node.job = attempt.job;
    node.host = place.host;
    node.role = place.role;
    node.index = place.index;
    node.created = node.state_since = now;
    node.reason = "about to be made";
    node.placement = place;
    node.placement.node = node.id;
    // No checks to wait for: the head goes on by itself once all nodes are alive, without asking back.
    node.desired = model::Phase::driving;
    node.address = plan.address;
    node.port_base = plan.port_base;
    const std::string token = random_hex(rng_, kTokenBytes);
    node.token_hash = sha256_hex(token);
    out.transaction.secrets.emplace_back("node/" + node.id.value + "/token", sealer_.seal(token));
    StoredPlan stored_plan = to_stored(node.id, cluster.id, plan);
    out.calls.push_back({Call::Kind::ensure, node.id, attempt.job});
    store::Event made = control_event(now, attempt.job, "node.requested", fmt::format("{} on host {}", node.id.value, node.host.value));
    rows.push_back({std::move(node), std::move(made)});
    rows.push_back({std::move(stored_plan), control_event(now, {}, "node.planned", "")});
  }
  return rows;
}

Result<Admission> Scheduling::grow(const Aggregate& aggregate, const std::vector<model::Placement>& placement,
                                   std::vector<std::int32_t>& ports, Timestamp now) {
  Admission out;
  model::Job job = *aggregate.job;
  model::Attempt attempt = *aggregate.attempt;
  model::Cluster cluster = *aggregate.cluster;
  model::Node head = aggregate.nodes.at(0);
  HELIO_TRY(rows, make_nodes(attempt, cluster, placement, head.port_base, ports, now, out));
  for (const Put& row : rows) {
    if (const auto* node = std::get_if<model::Node>(&row.resource)) attempt.placement.push_back(node->placement);
  }
  cluster.nodes += static_cast<std::int32_t>(placement.size());
  cluster.reason = "more of its nodes are being made";
  ++head.generation;
  job.growing_since.reset();
  job.not_before.reset();
  std::vector<Put>& puts = out.transaction.puts;
  const std::string what = fmt::format("{} worker{} more", placement.size(), placement.size() == 1 ? "" : "s");
  puts.push_back({job, control_event(now, job.id, "cluster.grown", what)});
  puts.push_back({std::move(attempt), control_event(now, job.id, "attempt.grown", "")});
  puts.push_back({std::move(cluster), control_event(now, job.id, "cluster.sized", what)});
  puts.push_back({std::move(head), control_event(now, job.id, "node.asked", "told of " + what)});
  for (Put& row : rows) puts.push_back(std::move(row));
  return out;
}

Result<std::optional<Admission>> Scheduling::step_guest(const View& view, const Aggregate& guest, Timestamp now) {
  const model::Job& job = *guest.job;
  const Aggregate* cluster = view.find(*job.guest_of);
  if (cluster == nullptr || !cluster->job || !cluster->attempt || cluster->job->stop != model::StopReason::none) return std::nullopt;
  const model::Attempt& attempt = *cluster->attempt;
  const auto head = cluster->nodes.find(0);
  if (attempt.state != model::AttemptState::running || attempt.stop_asked || head == cluster->nodes.end()) return std::nullopt;
  const auto image = view.images().find(attempt.image);
  if (image == view.images().end()) return std::nullopt;
  model::Placement place;
  place.host = head->second.host;
  place.role = model::Role::head;
  place.group = "head";
  std::set<std::int32_t> slots = view.slots();
  std::vector<std::int32_t> ports = view.port_bases();
  HELIO_TRY(admission, admit(job, image->second, {place}, slots, ports, now, attempt.id));
  return admission;
}

Result<Admission> Scheduling::admit(const model::Job& stored, const model::Image& image, const std::vector<model::Placement>& placement,
                                    std::set<std::int32_t>& slots, std::vector<std::int32_t>& ports, Timestamp now,
                                    const std::optional<AttemptId>& guest_of) {
  Admission out;
  Transaction& tx = out.transaction;
  model::Job job = stored;
  ++job.attempts;
  const AttemptId attempt_id(fmt::format("{}-{}", job.id.value, job.attempts));

  model::Cluster cluster;
  cluster.id = ClusterId("c-" + attempt_id.value);
  cluster.attempt = attempt_id;
  cluster.job = job.id;
  cluster.created = cluster.state_since = now;
  cluster.reason = "its nodes are being made";
  cluster.retain = job.spec.retention.nodes;
  cluster.slot = take_slot(slots);
  cluster.nodes = static_cast<std::int32_t>(placement.size());

  model::Attempt attempt;
  attempt.id = attempt_id;
  attempt.job = job.id;
  attempt.number = job.attempts;
  attempt.created = attempt.state_since = now;
  attempt.reason = "its nodes are being made";
  attempt.cluster = cluster.id;
  attempt.marks = {{"accepted", job.created}, {"admitted", now}};
  attempt.image = image.name.value;
  attempt.ray_version = image.ray_version;
  attempt.guest_of = guest_of;

  HELIO_TRY(rows, make_nodes(attempt, cluster, placement, 0, ports, now, out));
  for (const Put& row : rows) {
    if (const auto* node = std::get_if<model::Node>(&row.resource)) attempt.placement.push_back(node->placement);
  }
  if (!guest_of) tx.secrets.emplace_back("attempt/" + attempt_id.value + "/ray_token", sealer_.seal(random_hex(rng_, kTokenBytes)));

  job.state = model::JobState::starting;
  job.state_since = now;
  job.reason = fmt::format("attempt {} is {}", job.attempts, guest_of ? "about to be submitted to its cluster" : "starting its cluster");
  job.current_attempt = attempt_id;
  if (!job.first_admitted) job.first_admitted = now;
  const JobId id = job.id;
  store::Event started =
      control_event(now, id, "job.starting", fmt::format("admitted as attempt {}, {} nodes", job.attempts, cluster.nodes));
  tx.puts.push_back({std::move(job), std::move(started)});
  tx.puts.push_back({std::move(attempt), control_event(now, id, "attempt.admitted", "")});
  tx.puts.push_back({std::move(cluster), control_event(now, id, "cluster.requested", "")});
  for (Put& row : rows) tx.puts.push_back(std::move(row));
  return out;
}

}  // namespace helio::control
