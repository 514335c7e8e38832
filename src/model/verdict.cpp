#include "model/verdict.h"

#include "base/json/describe.h"

#include <utility>

namespace helio::model {

BOOST_DESCRIBE_ENUM(CauseClass, none, user, node, platform, unknown)
BOOST_DESCRIBE_ENUM(Confidence, high, medium, low)
BOOST_DESCRIBE_STRUCT(Evidence, (), (source, text, at))
BOOST_DESCRIBE_STRUCT(Verdict, (), (cause, charged_to, confidence, message, stage, node, exit_code, evidence, decision))

CauseClass cause_class(std::string_view cause) {
  static constexpr std::array kTable{
      std::pair{cause::kSucceeded, CauseClass::none},
      std::pair{cause::kEntrypointExit, CauseClass::user},
      std::pair{cause::kEntrypointSignal, CauseClass::unknown},
      std::pair{cause::kEntrypointNotStarted, CauseClass::user},
      std::pair{cause::kRuntimeEnv, CauseClass::user},
      std::pair{cause::kStoppedUser, CauseClass::none},
      std::pair{cause::kStoppedIdle, CauseClass::none},
      std::pair{cause::kDeadlineRun, CauseClass::none},
      std::pair{cause::kDeadlineTotal, CauseClass::none},
      std::pair{cause::kDeadlinePending, CauseClass::none},
      std::pair{cause::kDeadlineReadiness, CauseClass::platform},
      std::pair{cause::kRayStartFailed, CauseClass::platform},
      std::pair{cause::kRayStartDied, CauseClass::node},
      std::pair{cause::kRayletDied, CauseClass::node},
      std::pair{cause::kGcsDied, CauseClass::node},
      std::pair{cause::kDashboardDied, CauseClass::node},
      std::pair{cause::kSupervisorDied, CauseClass::platform},
      std::pair{cause::kGcsRowDead, CauseClass::node},
      std::pair{cause::kAgentDied, CauseClass::node},
      std::pair{cause::kNodeOom, CauseClass::user},
      std::pair{cause::kNodeDiskFull, CauseClass::user},
      std::pair{cause::kPortInUse, CauseClass::platform},
      std::pair{cause::kProviderFailed, CauseClass::platform},
      std::pair{cause::kHostReboot, CauseClass::node},
      std::pair{cause::kImageBroken, CauseClass::user},
      std::pair{cause::kInfeasible, CauseClass::user},
      std::pair{cause::kClusterLost, CauseClass::node},
      std::pair{cause::kClusterEnded, CauseClass::none},
  };
  for (const auto& [name, charged] : kTable) {
    if (name == cause) return charged;
  }
  return CauseClass::unknown;
}

}  // namespace helio::model

HELIO_JSON_DEFINE_ENUM(helio::model::CauseClass)
HELIO_JSON_DEFINE_ENUM(helio::model::Confidence)
HELIO_JSON_DEFINE(helio::model::Evidence)
HELIO_JSON_DEFINE(helio::model::Verdict)
