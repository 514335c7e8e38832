#pragma once
// Internal to link/: what all connections share.

#include "link/hub.h"
#include "link/strand.h"
#include "link/syncer.h"
#include "rt/event_loop.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace helio::link {

class Session;

/// One node that is, or was a moment ago, connected. Its strand outlives connections, so that "closed" of the former one is recorded
/// before "open" of the next.
struct NodeEntry {
  explicit NodeEntry(rt::WorkerPool& pool) : strand(std::make_shared<Strand>(pool)) {}
  std::shared_ptr<Strand> strand;
  std::shared_ptr<Session> session;  ///< guarded by Core::mutex
  std::optional<model::NodeUsage> usage;
};

struct Core : std::enable_shared_from_this<Core> {
  Core(store::Store& store_in, store::LogStore& logs_in, const Clock& clock_in, AssignmentSource assignment_in, HubOptions options_in);

  store::Store& store;
  store::LogStore& logs;
  const Clock& clock;
  AssignmentSource assignment;
  HubOptions options;
  rt::SerialExecutor timers;  ///< timers, and the syncs that they start
  rt::WorkerPool pool;
  Syncer syncer;
  std::shared_ptr<Strand> changes;
  std::atomic<bool> changes_posted{false};
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> next_exec{1};

  mutable std::mutex mutex;
  std::map<NodeId, std::shared_ptr<NodeEntry>> nodes;
  std::map<std::string, NodeId> by_hash;  ///< cache of found tokens; the store decides

  /// Node of this agent token, if it lives. Worker thread. Errors: unauthenticated; the store's.
  Result<model::Node> authenticate(const net::Request& request);
  /// Makes `session` the node's connection; returns the former one, to be closed.
  std::shared_ptr<Session> attach(const std::shared_ptr<Session>& session);
  /// True when `session` was the node's connection until now.
  bool detach(const Session& session);
  /// Forgets the entry if nobody connected meanwhile.
  void forget(const NodeId& node);
  std::shared_ptr<NodeEntry> entry(const NodeId& node);
  std::shared_ptr<Session> find(const NodeId& node) const;

  /// Store listener: cheap, any thread.
  void wake_changes();
  /// Hands new generations to connected nodes; closes those of nodes that are gone.
  void read_changes();

 private:
  Result<model::Node> find_by_hash(const std::string& hash);
  std::atomic<std::int64_t> seen_ = 0;  ///< written on `changes` only
};

}  // namespace helio::link
