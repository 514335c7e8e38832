#pragma once
// The only way facts from outside enter: an agent's status, a provider's word. Late, doubled and reordered reports are harmless:
// a status with a sequence not above the stored one is dropped, and nothing changes a node that is gone.

#include "model/cluster.h"
#include "store/store.h"

namespace helio::store {

enum class Accepted { yes, stale };

/// Records an agent's report on its node. Usage alone is not durable: a status that differs from the stored one by usage only is not
/// written.
Result<Accepted> record_status(Store& store, const model::AgentStatus& status, Timestamp now);
/// Marks the agent's connection as open or closed.
Result<Accepted> record_connection(Store& store, const NodeId& node, bool connected, Timestamp now);
/// Records the provider's fact. `ended` and `absent` are final for a node.
Result<Accepted> record_fact(Store& store, const NodeId& node, const model::ProviderFact& fact, Timestamp now);

}  // namespace helio::store
