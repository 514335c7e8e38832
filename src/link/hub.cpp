#include "link/hub.h"

#include "link/core.h"
#include "link/session.h"

namespace helio::link {
namespace {
constexpr int kGoingAway = 1001;
}  // namespace

Hub::Hub(store::Store& store, store::LogStore& logs, const Clock& clock, AssignmentSource assignment, HubOptions options)
    : core_(std::make_shared<Core>(store, logs, clock, std::move(assignment), std::move(options))) {
  subscription_ = store.subscribe([core = core_](std::int64_t) { core->wake_changes(); });
}

Hub::~Hub() { stop(); }

net::WsHandler Hub::handler() {
  return [core = core_](net::Request& request) -> net::WsAccept {
    net::WsAccept accept;
    auto node = core->authenticate(request);
    if (!node) {
      accept.refuse = net::problem(node.error());
      return accept;
    }
    accept.open = [core, id = node->id, attempt = node->attempt](std::shared_ptr<net::WsSession> socket) {
      return std::make_shared<Session>(core, std::move(socket), id, attempt)->start();
    };
    return accept;
  };
}

std::size_t Hub::connected() const {
  const std::scoped_lock lock(core_->mutex);
  std::size_t count = 0;
  for (const auto& [node, entry] : core_->nodes) count += entry->session ? 1 : 0;
  return count;
}

bool Hub::connected(const NodeId& node) const { return core_->find(node) != nullptr; }

std::map<NodeId, model::NodeUsage> Hub::usage() const {
  const std::scoped_lock lock(core_->mutex);
  std::map<NodeId, model::NodeUsage> out;
  for (const auto& [node, entry] : core_->nodes) {
    if (entry->usage) out[node] = *entry->usage;
  }
  return out;
}

Result<std::function<void()>> Hub::exec(const NodeId& node, const ExecRequest& request, ExecHandlers handlers) {
  const auto session = core_->find(node);
  if (!session) return fail(ErrorCode::unavailable, "the agent of node {} is not connected", node.value);
  return session->exec(request, std::move(handlers));
}

void Hub::stop() {
  if (core_->stopping.exchange(true)) return;
  subscription_.reset();
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::scoped_lock lock(core_->mutex);
    for (const auto& [node, entry] : core_->nodes) {
      if (entry->session) sessions.push_back(entry->session);
    }
  }
  for (const auto& session : sessions) session->close(kGoingAway, "the daemon stops");
  core_->pool.stop();
  core_->timers.stop();
  // Sessions own the core: those whose close is not over yet would keep it for ever.
  std::map<NodeId, std::shared_ptr<NodeEntry>> nodes;
  {
    const std::scoped_lock lock(core_->mutex);
    nodes.swap(core_->nodes);
  }
}

}  // namespace helio::link
