#include "control/write.h"

namespace helio::control {

bool is_lease_lost(const Error& error) {
  return error.code() == ErrorCode::precondition_failed && error.message().find("lease") != std::string::npos;
}

Result<void> write(store::Store& store, const store::Lease& lease, const Transaction& transaction, Timestamp now) {
  return store.write(lease, [&](store::WriteTx& tx) -> Result<void> {
    for (const Put& put : transaction.puts) {
      HELIO_CHECK_OK(std::visit(
          [&](const auto& resource) -> Result<void> {
            auto copy = resource;
            return tx.put(copy, put.event);
          },
          put.resource));
    }
    for (const auto& [key, sealed] : transaction.secrets) HELIO_CHECK_OK(tx.put_secret(key, sealed));
    for (const std::string& prefix : transaction.forget_secrets) HELIO_CHECK_OK(tx.remove_secrets(prefix));
    for (const NodeId& node : transaction.remove_plans) {
      HELIO_TRY(plan, tx.find<StoredPlan>(node.value));
      if (plan) HELIO_CHECK_OK(tx.remove<StoredPlan>(node.value, control_event(now, {}, "node.plan_removed", "")));
    }
    return {};
  });
}

}  // namespace helio::control
