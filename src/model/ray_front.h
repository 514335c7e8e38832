#pragma once
// What the Ray Jobs API front remembers beside a job: the ids, metadata and package names that Ray's clients use.

#include "base/ids.h"
#include "base/json/json.h"
#include "base/units.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace helio::model {

/// A job under the id that its client knows; as submitted, because clients compare what comes back.
struct RaySubmission {
  std::string workspace;
  std::string submission_id;  ///< unique in the workspace until it is deleted
  JobId job;
  std::string entrypoint;
  std::map<std::string, std::string> metadata;
  std::optional<json::Object> runtime_env;
  std::vector<std::string> notes;  ///< what was left out of it, for people
  Timestamp created;
  std::int64_t revision = 0;
};

/// A package under the name that its client computed (gcs://NAME).
struct RayPackage {
  std::string workspace;
  std::string name;
  PackageId sha256;
  Timestamp stored;
  std::int64_t revision = 0;
};

}  // namespace helio::model

HELIO_JSON(helio::model::RaySubmission)
HELIO_JSON(helio::model::RayPackage)
