#include "link/core.h"

#include "base/hash.h"
#include "base/log.h"
#include "link/session.h"
#include "model/kinds.h"

#include <algorithm>
#include <utility>

namespace helio::link {
namespace {

constexpr int kNormal = 1000;
constexpr std::size_t kPoolQueue = 1U << 16U;
constexpr int kEventsAtOnce = 500;

const std::vector<std::string>& live_states() {
  static const std::vector<std::string> states = [] {
    std::vector<std::string> out;
    for (int i = 0;; ++i) {
      const auto state = static_cast<model::NodeState>(i);
      if (state == model::NodeState::gone) return out;
      out.emplace_back(json::enum_name(state));
    }
  }();
  return states;
}

}  // namespace

Core::Core(store::Store& store_in, store::LogStore& logs_in, const Clock& clock_in, AssignmentSource assignment_in, HubOptions options_in)
    : store(store_in),
      logs(logs_in),
      clock(clock_in),
      assignment(std::move(assignment_in)),
      options(std::move(options_in)),
      timers("link"),
      pool(options.threads, kPoolQueue, "link-worker"),
      syncer(logs, timers, Syncer::Options{options.sync_every, options.sync_bytes, options.retry_after}),
      changes(std::make_shared<Strand>(pool)),
      seen_(store.revision()) {}

Result<model::Node> Core::find_by_hash(const std::string& hash) {
  std::optional<NodeId> cached;
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = by_hash.find(hash); found != by_hash.end()) cached = found->second;
  }
  std::optional<model::Node> node;
  HELIO_CHECK_OK(store.read([&](store::ReadTx& tx) -> Result<void> {
    if (cached) {
      HELIO_TRY(found, tx.find<model::Node>(cached->value));
      node = std::move(found);
      return {};
    }
    store::ListQuery live;
    live.states = live_states();
    HELIO_TRY(rows, tx.list_rows(model::KindOf<model::Node>::name, live));
    for (const store::Row& row : rows.items) {
      // Decoding a document costs a hundred times as much as looking whether the hash stands in it.
      if (!row.doc.contains(hash)) continue;
      HELIO_TRY(found, store::from_row<model::Node>(row));
      if (found.token_hash == hash) node = std::move(found);
    }
    return {};
  }));
  const bool valid = node && node->state != model::NodeState::gone && equal_constant_time(node->token_hash, hash);
  const std::scoped_lock lock(mutex);
  if (!valid) {
    by_hash.erase(hash);
    return fail(ErrorCode::unauthenticated, "the agent token is not known");
  }
  by_hash[hash] = node->id;
  return std::move(*node);
}

Result<model::Node> Core::authenticate(const net::Request& request) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto header = request.header("Authorization");
  if (!header || !header->starts_with(kScheme) || header->size() == kScheme.size()) {
    return fail(ErrorCode::unauthenticated, "the header 'Authorization: Bearer <agent token>' is missing");
  }
  return find_by_hash(sha256_hex(header->substr(kScheme.size())));
}

std::shared_ptr<NodeEntry> Core::entry(const NodeId& node) {
  const std::scoped_lock lock(mutex);
  auto& found = nodes[node];
  if (!found) found = std::make_shared<NodeEntry>(pool);
  return found;
}

std::shared_ptr<Session> Core::attach(const std::shared_ptr<Session>& session) {
  const auto node_entry = entry(session->node());
  const std::scoped_lock lock(mutex);
  return std::exchange(node_entry->session, session);
}

bool Core::detach(const Session& session) {
  const std::scoped_lock lock(mutex);
  const auto found = nodes.find(session.node());
  if (found == nodes.end() || found->second->session.get() != &session) return false;
  found->second->session.reset();
  found->second->usage.reset();
  return true;
}

void Core::forget(const NodeId& node) {
  const std::scoped_lock lock(mutex);
  const auto found = nodes.find(node);
  if (found != nodes.end() && !found->second->session) nodes.erase(found);
}

std::shared_ptr<Session> Core::find(const NodeId& node) const {
  const std::scoped_lock lock(mutex);
  const auto found = nodes.find(node);
  return found == nodes.end() ? nullptr : found->second->session;
}

void Core::wake_changes() {
  // Nothing in it for agents.
  if (stopping.load() || store.changed(model::KindOf<model::Node>::name) <= seen_.load()) return;
  if (changes_posted.exchange(true)) return;
  changes->post([self = shared_from_this()] { self->read_changes(); });
}

void Core::read_changes() {
  changes_posted.store(false);
  bool any = false;
  {
    const std::scoped_lock lock(mutex);
    any = !nodes.empty();
  }
  if (!any) {
    // A connection that comes later reads the node itself.
    seen_ = store.revision();
    return;
  }
  std::map<NodeId, bool> touched;  // node -> gone
  bool all = false;
  for (bool more = true; more;) {
    store::EventQuery query;
    query.since = seen_;
    query.kind = model::KindOf<model::Node>::name;
    query.limit = kEventsAtOnce;
    auto read = store.read([&](store::ReadTx& tx) -> Result<void> {
      HELIO_TRY(events, tx.events(query));
      for (const store::Event& event : events) {
        seen_ = event.revision;
        // A change is a patch, or the whole document where no patch can say it; neither is a removal.
        const auto* change = event.whole.is_object() ? event.whole.if_object() : event.patch.if_object();
        if (change == nullptr) {
          touched[NodeId(event.id)] = true;
          continue;
        }
        const auto* state = change->if_contains("state");
        if (state != nullptr && state->is_string() && std::string_view(state->get_string()) == "gone") touched[NodeId(event.id)] = true;
        if (change->contains("generation")) touched.try_emplace(NodeId(event.id), false);
      }
      more = std::cmp_equal(events.size(), query.limit);
      if (more) return {};
      // What is of other kinds has been looked at too: without this each round would look at it again.
      HELIO_TRY(revision, tx.revision());
      seen_ = std::max(seen_.load(), revision);
      return {};
    });
    if (!read) {
      log::warn("change feed of nodes: {}", read.error().text());
      seen_ = store.revision();
      all = true;
      break;
    }
  }
  std::vector<std::pair<std::shared_ptr<NodeEntry>, std::shared_ptr<Session>>> push;
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [node, node_entry] : nodes) {
      if (!node_entry->session) continue;
      const auto change = touched.find(node);
      if (change == touched.end() && !all) continue;
      if (change != touched.end() && change->second) {
        node_entry->session->close(kNormal, "the node is gone");
      } else {
        push.emplace_back(node_entry, node_entry->session);
      }
    }
  }
  for (const auto& [node_entry, target] : push) {
    node_entry->strand->post([session = target] { session->push_assignment(); });
  }
}

}  // namespace helio::link
