#pragma once
// Every stored resource kind, in one table: its name in rows and events, and how its indexed columns are read from the struct.

#include "model/access.h"
#include "model/cluster.h"
#include "model/job.h"
#include "model/pool.h"
#include "model/ray_front.h"

#include <string>
#include <string_view>

namespace helio::model {

template <class T>
struct KindOf;  // name; id(t); state(t); parent(t): the owner in a list query; workspace(t)

#define HELIO_KIND(T, NAME, ID, STATE, PARENT, WORKSPACE)                           \
  template <>                                                                       \
  struct KindOf<T> {                                                                \
    static constexpr std::string_view name = NAME;                                  \
    static std::string id(const T& t) { return ID; }                                \
    static std::string state([[maybe_unused]] const T& t) { return STATE; }         \
    static std::string parent([[maybe_unused]] const T& t) { return PARENT; }       \
    static std::string workspace([[maybe_unused]] const T& t) { return WORKSPACE; } \
  };

HELIO_KIND(Job, "job", t.id.value, std::string(json::enum_name(t.state)), "", t.spec.workspace)
HELIO_KIND(Attempt, "attempt", t.id.value, std::string(json::enum_name(t.state)), t.job.value, "")
HELIO_KIND(Cluster, "cluster", t.id.value, std::string(json::enum_name(t.state)), t.attempt.value, "")
HELIO_KIND(ClusterName, "cluster_name", t.workspace + "/" + t.name, "", t.job.value, t.workspace)
HELIO_KIND(Node, "node", t.id.value, std::string(json::enum_name(t.state)), t.cluster.value, "")
HELIO_KIND(Flavor, "flavor", t.name.value, "", "", "")
HELIO_KIND(Image, "image", t.name.value, "", "", "")
HELIO_KIND(Host, "host", t.id.value, std::string(json::enum_name(t.state)), "", "")
HELIO_KIND(Token, "token", t.id.value, "", "", "")
HELIO_KIND(BrowserSession, "session", t.id.value, "", t.token.value, "")
HELIO_KIND(RaySubmission, "ray_submission", t.workspace + "/" + t.submission_id, "", t.job.value, t.workspace)
HELIO_KIND(RayPackage, "ray_package", t.workspace + "/" + t.name, "", "", t.workspace)

#undef HELIO_KIND

}  // namespace helio::model
