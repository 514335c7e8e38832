#include "model/states.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace helio::model {
namespace {

/// Walks all pairs and compares with the table of docs/design.md, written out here once more by name.
template <class State>
void expect_table(int count, const std::map<std::string, std::set<std::string>>& table) {
  ASSERT_EQ(static_cast<int>(table.size()), count);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < count; ++k) {
      const auto from = static_cast<State>(i);
      const auto to = static_cast<State>(k);
      const std::string from_name(json::enum_name(from));
      const std::string to_name(json::enum_name(to));
      ASSERT_TRUE(table.contains(from_name)) << from_name;
      EXPECT_EQ(can_go(from, to), table.at(from_name).contains(to_name)) << from_name << " -> " << to_name;
    }
    if constexpr (requires(State s) { is_terminal(s); }) {
      EXPECT_EQ(is_terminal(static_cast<State>(i)), table.at(std::string(json::enum_name(static_cast<State>(i)))).empty());
    }
  }
}

TEST(States, job) {
  expect_table<JobState>(9, {{"queued", {"starting", "suspended", "stopping", "stopped", "failed"}},
                             {"starting", {"running", "restarting", "queued", "suspended", "stopping", "succeeded", "failed", "stopped"}},
                             {"running", {"restarting", "queued", "suspended", "stopping", "succeeded", "failed", "stopped"}},
                             {"restarting", {"queued", "suspended", "stopping", "failed", "stopped"}},
                             {"suspended", {"queued", "stopping", "stopped", "failed"}},
                             {"stopping", {"succeeded", "failed", "stopped"}},
                             {"succeeded", {}},
                             {"failed", {}},
                             {"stopped", {}}});
}

TEST(States, attempt) {
  const std::set<std::string> ends{"succeeded", "failed", "stopped", "preempted", "suspended", "lost"};
  auto with = [&](std::set<std::string> more) {
    more.insert(ends.begin(), ends.end());
    return more;
  };
  expect_table<AttemptState>(11, {{"admitted", with({"starting", "ending"})},
                                  {"starting", with({"checking", "running", "ending"})},
                                  {"checking", with({"running", "ending"})},
                                  {"running", with({"ending"})},
                                  {"ending", ends},
                                  {"succeeded", {}},
                                  {"failed", {}},
                                  {"stopped", {}},
                                  {"preempted", {}},
                                  {"suspended", {}},
                                  {"lost", {}}});
}

TEST(States, cluster) {
  expect_table<ClusterState>(7, {{"requested", {"starting", "draining", "gone"}},
                                 {"starting", {"ready", "degraded", "retained", "draining", "gone"}},
                                 {"ready", {"degraded", "retained", "draining", "gone"}},
                                 {"degraded", {"ready", "retained", "draining", "gone"}},
                                 {"retained", {"draining", "gone"}},
                                 {"draining", {"gone"}},
                                 {"gone", {}}});
}

TEST(States, node) {
  expect_table<NodeState>(9, {{"requested", {"launched", "connected", "joined", "checked", "serving", "unreachable", "draining", "gone"}},
                              {"launched", {"connected", "joined", "checked", "serving", "unreachable", "draining", "gone"}},
                              {"connected", {"joined", "checked", "serving", "unreachable", "draining", "gone"}},
                              {"joined", {"checked", "serving", "unreachable", "draining", "gone"}},
                              {"checked", {"serving", "unreachable", "draining", "gone"}},
                              {"serving", {"unreachable", "draining", "gone"}},
                              {"unreachable", {"launched", "connected", "joined", "checked", "serving", "draining", "gone"}},
                              {"draining", {"gone"}},
                              {"gone", {}}});
}

TEST(States, host) {
  expect_table<HostState>(6, {{"ready", {"suspect", "draining", "quarantined", "offline"}},
                              {"suspect", {"ready", "draining", "quarantined", "offline"}},
                              {"draining", {"ready", "quarantined", "offline"}},
                              {"quarantined", {"probation", "offline"}},
                              {"probation", {"ready", "quarantined", "draining", "offline"}},
                              {"offline", {"ready", "probation"}}});
}

}  // namespace
}  // namespace helio::model
