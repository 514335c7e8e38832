#include "control/orphans.h"

#include "base/log.h"
#include "control/draft.h"
#include "model/kinds.h"

#include <fmt/format.h>
#include <set>

namespace helio::control {

Result<void> sweep_orphans(store::Store& store, const store::Lease& lease, provider::Provider& provider, const std::vector<NodeId>& live) {
  HELIO_CHECK_OK(store.write(lease, [](store::WriteTx&) -> Result<void> { return {}; }));
  HELIO_TRY(found, provider.sweep(live));
  for (const std::string& what : found) log::warn("orphan removed: {}", what);
  return {};
}

namespace {

bool same_offer(const model::Host& a, const model::Host& b) {
  return a.capacity == b.capacity && a.physical_cpu == b.physical_cpu && a.isolation == b.isolation && a.limits == b.limits &&
         a.address == b.address && a.cpu_overcommit == b.cpu_overcommit && json::encode(a.gpus) == json::encode(b.gpus);
}

}  // namespace

Result<void> record_hosts(store::Store& store, const store::Lease& lease, provider::Provider& provider, Timestamp now) {
  HELIO_TRY(offered, provider.capacity());
  return store.write(lease, [&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(stored, tx.list<model::Host>());
    std::set<HostId> seen;
    for (const model::Host& host : offered) {
      seen.insert(host.id);
      const auto old = std::ranges::find(stored.items, host.id, &model::Host::id);
      model::Host row = host;
      if (old == stored.items.end()) {
        row.created = now;
        HELIO_CHECK_OK(tx.put(row, control_event(now, {}, "host.added", host.id.value)));
        continue;
      }
      row.revision = old->revision;
      row.created = old->created;
      const bool back = old->state == model::HostState::offline;
      if (!back) {
        row.state = old->state;
        row.reason = old->reason;
      }
      if (back || !same_offer(*old, row)) HELIO_CHECK_OK(tx.put(row, control_event(now, {}, "host.changed", host.id.value)));
    }
    for (model::Host& host : stored.items) {
      if (seen.contains(host.id) || host.state == model::HostState::offline) continue;
      host.state = model::HostState::offline;
      host.reason = "the provider does not offer it any more";
      HELIO_CHECK_OK(tx.put(host, control_event(now, {}, "host.offline", host.reason)));
    }
    return {};
  });
}

}  // namespace helio::control
