#include "model/verdict.h"

#include <gtest/gtest.h>

#include <map>

namespace helio::model {
namespace {

TEST(Verdict, each_cause_is_charged_to_the_class_that_users_are_told) {
  const std::map<std::string_view, CauseClass> expected{
      {cause::kSucceeded, CauseClass::none},
      {cause::kStoppedUser, CauseClass::none},
      {cause::kDeadlineRun, CauseClass::none},
      {cause::kDeadlineTotal, CauseClass::none},
      {cause::kDeadlinePending, CauseClass::none},
      {cause::kEntrypointExit, CauseClass::user},
      {cause::kEntrypointNotStarted, CauseClass::user},
      {cause::kRuntimeEnv, CauseClass::user},
      {cause::kNodeOom, CauseClass::user},
      {cause::kNodeDiskFull, CauseClass::user},
      {cause::kImageBroken, CauseClass::user},
      {cause::kInfeasible, CauseClass::user},
      {cause::kRayStartDied, CauseClass::node},
      {cause::kRayletDied, CauseClass::node},
      {cause::kGcsDied, CauseClass::node},
      {cause::kDashboardDied, CauseClass::node},
      {cause::kGcsRowDead, CauseClass::node},
      {cause::kAgentDied, CauseClass::node},
      {cause::kHostReboot, CauseClass::node},
      {cause::kDeadlineReadiness, CauseClass::platform},
      {cause::kRayStartFailed, CauseClass::platform},
      {cause::kSupervisorDied, CauseClass::platform},
      {cause::kPortInUse, CauseClass::platform},
      {cause::kProviderFailed, CauseClass::platform},
      {cause::kEntrypointSignal, CauseClass::unknown},
      {cause::kUnknown, CauseClass::unknown},
      {"a.cause.of.tomorrow", CauseClass::unknown},
  };
  for (const auto& [name, charged] : expected) EXPECT_EQ(cause_class(name), charged) << name;
}

}  // namespace
}  // namespace helio::model
