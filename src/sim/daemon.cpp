#include "sim/daemon.h"

#include "store/observations.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace helio::sim {

std::string ToySealer::seal(std::string_view clear) const {
  std::string out(clear.rbegin(), clear.rend());
  for (char& c : out) c = static_cast<char>(static_cast<unsigned char>(c) ^ 0x5aU);
  return "toy:" + out;
}

Result<std::string> ToySealer::open(std::string_view sealed) const {
  if (!sealed.starts_with("toy:")) return fail(ErrorCode::internal, "not sealed");
  std::string out(sealed.substr(4));
  std::ranges::reverse(out);
  for (char& c : out) c = static_cast<char>(static_cast<unsigned char>(c) ^ 0x5aU);
  return out;
}

Result<std::int64_t> SimLogs::append(const store::StreamKey& key, std::int64_t offset, std::string_view bytes, Timestamp) {
  hold(key.node, offset + static_cast<std::int64_t>(bytes.size()));
  return held(key.node);
}

void SimLogs::hold(const NodeId& node, std::int64_t size) { held_[node] = std::max(held_[node], size); }

std::int64_t SimLogs::held(const NodeId& node) const {
  const auto found = held_.find(node);
  return found == held_.end() ? 0 : found->second;
}

Daemon::Daemon(const Surroundings& around, store::FaultStore::Hook fault, int number)
    : around_(around),
      buggy_(around.store, around.bug, around.rng),
      witness_(buggy_, around.newest_lease, around.breach),
      faulty_(witness_, std::move(fault)),
      provider_(around.world),
      jobs_(faulty_, around.sealer, around.time, around.rng, around.settings, around.home),
      number_(number),
      started_(around.time.mono()) {}

Daemon::~Daemon() {
  *alive_ = false;
  around_.world.detach(this);
}

Result<void> Daemon::start() {
  HELIO_TRY(lease, faulty_.take_lease(fmt::format("daemon-{}", number_)));
  loop_ = std::make_unique<control::Loop>(control::Deps{.store = faulty_,
                                                        .provider = provider_,
                                                        .logs = around_.logs,
                                                        .clock = around_.time,
                                                        .executor = around_.time,
                                                        .sealer = around_.sealer,
                                                        .rng = around_.rng,
                                                        .settings = around_.settings,
                                                        .home = around_.home,
                                                        .lease = lease,
                                                        .daemon_url = "ws://127.0.0.1:1/agent/v1",
                                                        .interface = "",
                                                        .background = nullptr,
                                                        .salvage = [this](const NodeId& node, const provider::NodePlan&) { salvage(node); },
                                                        .lease_lost = [this] { ended_ = true; }});
  HELIO_CHECK_OK(loop_->start());
  pushed_ = faulty_.revision();
  subscription_ = faulty_.subscribe([this](std::int64_t) {
    if (std::exchange(push_posted_, true)) return;
    around_.time.post([this, alive = alive_] {
      if (*alive) push_changes();
    });
  });
  around_.world.attach(this);
  return {};
}

void Daemon::salvage(const NodeId& node) {
  const auto remains = around_.world.remains(node);
  if (!remains || around_.bug == Bug::skip_salvage) return;
  around_.logs.hold(node, remains->log_size);
  static_cast<void>(store::record_status(faulty_, remains->status, around_.time.now()));
}

void Daemon::push_changes() {
  push_posted_ = false;
  std::set<std::string> nodes;
  store::EventQuery query;
  query.since = pushed_;
  query.kind = "node";
  auto read = faulty_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(now, tx.revision());
    HELIO_TRY(events, tx.events(query));
    pushed_ = events.empty() ? now : events.back().revision;
    for (const store::Event& event : events) {
      if (event.actor == "control" && event.type != "node.requested") nodes.insert(event.id);
    }
    return {};
  });
  if (!read) return;
  for (const std::string& id : nodes) {
    const NodeId node(id);
    if (const auto changed = assignment(node)) around_.world.push(node, *changed);
  }
}

bool Daemon::connection(const NodeId& node, bool connected) {
  if (around_.bug == Bug::unreachable_dead && !connected) {
    model::ProviderFact dead;
    dead.state = model::ProviderState::ended;
    dead.detail = "connection lost";
    dead.at = around_.time.now();
    static_cast<void>(store::record_fact(faulty_, node, dead, around_.time.now()));
  }
  auto recorded = store::record_connection(faulty_, node, connected, around_.time.now());
  return recorded && *recorded == store::Accepted::yes;
}

bool Daemon::status(const model::AgentStatus& status) {
  if (around_.bug != Bug::stale_status) return store::record_status(faulty_, status, around_.time.now()).has_value();
  model::AgentStatus believed = status;
  if (const auto node = store::get<model::Node>(faulty_, status.node.value)) {
    believed.sequence = std::max(believed.sequence, node->status.sequence + 1);
  }
  return store::record_status(faulty_, believed, around_.time.now()).has_value();
}

bool Daemon::logs(const NodeId& node, std::int64_t size) {
  around_.logs.hold(node, size);
  return true;
}

std::optional<model::Assignment> Daemon::assignment(const NodeId& node) {
  const control::AssignmentContext context{around_.sealer, around_.settings, around_.home, "", ""};
  auto built = control::build_assignment(faulty_, context, node);
  if (!built) return std::nullopt;
  return std::move(*built);
}

}  // namespace helio::sim
