#include "service/scope.h"

#include "service/fields.h"

namespace helio::service {

Error no_job(const JobId& id) { return Error(ErrorCode::not_found, fmt::format("no job '{}'", id.value)).with("job", id.value); }

Result<bool> knows(store::ReadTx& tx, const model::Scope& scope, const JobId& job) {
  if (scope.is_all()) return true;
  HELIO_TRY(workspace, tx.workspace_of(model::KindOf<model::Job>::name, job.value));
  return workspace && scope.holds(*workspace);
}

Result<void> check_workspace(const model::Scope& scope, std::string_view workspace) {
  constexpr std::string_view kOnly = "default";
  if (workspace == kOnly && scope.holds(workspace)) return {};
  const std::string there =
      scope.holds(workspace) ? fmt::format("this version has one, '{}'", kOnly) : "this token is for " + listed(scope.workspaces);
  return fail(Error(ErrorCode::not_found, fmt::format("no workspace '{}'; {}", workspace, there)).at("$.workspace"));
}

}  // namespace helio::service
