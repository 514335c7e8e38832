#include "sched/sched.h"

#include "base/rng.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <set>

namespace helio::sched {
namespace {

model::Resources shape(std::int64_t cpus, std::int64_t gib = 1, std::int32_t gpus = 0) {
  return {MilliCpu{cpus * 1000}, Bytes{gib << 30}, Bytes{0}, gpus};
}

HostView host(const std::string& id, std::int64_t cpus, std::int64_t gib = 64, std::int32_t gpus = 0) {
  HostView view;
  view.id = HostId(id);
  view.capacity = shape(cpus, gib, gpus);
  for (std::int32_t i = 0; i < gpus; ++i) view.free_gpus.push_back(i);
  return view;
}

Gang gang(const std::string& id, std::vector<model::Resources> sizes, std::int64_t queued = 0, std::int32_t priority = 5) {
  Gang out;
  out.job = JobId(id);
  out.priority = priority;
  out.queued_since = Timestamp{queued};
  std::int32_t index = 0;
  for (const auto& size : sizes) {
    Member member;
    member.role = index == 0 ? model::Role::head : model::Role::worker;
    member.index = index;
    member.group = index == 0 ? "head" : "workers";
    member.resources = size;
    out.members.push_back(member);
    ++index;
  }
  return out;
}

std::vector<std::string> admitted(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& admission : plan.admit) out.push_back(admission.job.value);
  return out;
}

TEST(PlanAdmissions, AdmitsWholeGangsInOrderOfPriorityTimeAndId) {
  State state{{host("a", 8)},
              {gang("j-late", {shape(2)}, 20), gang("j-b", {shape(2)}, 10), gang("j-a", {shape(2)}, 10), gang("j-vip", {shape(2)}, 30, 9)}};
  EXPECT_EQ(admitted(plan_admissions(state, {})), (std::vector<std::string>{"j-vip", "j-a", "j-b", "j-late"}));
}

TEST(PlanAdmissions, FirstThatDoesNotFitBlocksTheRest) {
  State state{{host("a", 4)}, {gang("j-1", {shape(2), shape(2), shape(2)}, 1), gang("j-2", {shape(1)}, 2), gang("j-3", {shape(1)}, 3)}};
  const Plan plan = plan_admissions(state, {});
  EXPECT_TRUE(plan.admit.empty());
  ASSERT_EQ(plan.wait.size(), 3U);
  EXPECT_EQ(plan.wait[0].constraint, "cpu");
  EXPECT_EQ(plan.wait[0].position, 1);
  EXPECT_NE(plan.wait[0].message.find("2 more CPUs"), std::string::npos) << plan.wait[0].message;
  EXPECT_EQ(plan.wait[1].constraint, "order");
  EXPECT_EQ(plan.wait[1].ahead, std::vector<JobId>{JobId("j-1")});
  EXPECT_EQ(plan.wait[2].position, 3);
}

TEST(PlanAdmissions, BackOffIsPassedOver) {
  State state{{host("a", 2)}, {gang("j-1", {shape(2)}, 1), gang("j-2", {shape(2)}, 2)}};
  state.queue[0].not_before = Timestamp{100};
  const Plan plan = plan_admissions(state, Timestamp{50});
  EXPECT_EQ(admitted(plan), std::vector<std::string>{"j-2"});
  ASSERT_EQ(plan.wait.size(), 1U);
  EXPECT_EQ(plan.wait[0].constraint, "back-off");
  EXPECT_EQ(admitted(plan_admissions(state, Timestamp{100})), std::vector<std::string>{"j-1"});
}

TEST(PlanAdmissions, NamesTheScarceResourceAndFragmentation) {
  State gpus{{host("a", 8, 64, 1)}, {gang("j-1", {shape(1, 1, 2)})}};
  EXPECT_EQ(plan_admissions(gpus, {}).wait.at(0).constraint, "gpus");
  State memory{{host("a", 8, 2)}, {gang("j-1", {shape(1, 4)})}};
  EXPECT_EQ(plan_admissions(memory, {}).wait.at(0).constraint, "memory");
  State split{{host("a", 3), host("b", 3)}, {gang("j-1", {shape(4)})}};
  EXPECT_EQ(plan_admissions(split, {}).wait.at(0).constraint, "no_host");
  State none{{}, {gang("j-1", {shape(1)})}};
  EXPECT_EQ(plan_admissions(none, {}).wait.at(0).constraint, "no_host");
  State drained{{host("a", 8)}, {gang("j-1", {shape(1)})}};
  drained.hosts[0].state = model::HostState::draining;
  EXPECT_EQ(plan_admissions(drained, {}).wait.at(0).constraint, "no_host");
}

TEST(PlanAdmissions, FillsTheFullestHostAndGivesLowestGpus) {
  State state{{host("a", 16, 64, 4), host("b", 4, 64, 2)}, {gang("j-1", {shape(1), shape(2, 1, 1)})}};
  state.hosts[1].free_gpus = {1};
  const Plan plan = plan_admissions(state, {});
  ASSERT_EQ(plan.admit.size(), 1U);
  const auto& placement = plan.admit[0].placement;
  ASSERT_EQ(placement.size(), 2U);
  EXPECT_EQ(placement[1].host, HostId("b"));
  EXPECT_EQ(placement[1].gpus, std::vector<std::int32_t>{1});
  EXPECT_EQ(placement[0].role, model::Role::head);
}

TEST(NeverFits, SaysTheLargestThatWould) {
  const std::vector<HostView> pool{host("a", 8)};
  EXPECT_FALSE(never_fits(pool, gang("j", {shape(1), shape(2), shape(2)}).members));
  const auto misfit = never_fits(pool, gang("j", {shape(1), shape(2), shape(2), shape(2), shape(2), shape(2)}).members);
  ASSERT_TRUE(misfit);
  EXPECT_EQ(misfit->largest_count, 3);
  EXPECT_EQ(misfit->group, "workers");
  EXPECT_EQ(misfit->constraint, "cpu");
  const auto head = never_fits(pool, gang("j", {shape(9)}).members);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->group, "head");
}

TEST(NeverFits, LooksAtWholeHostsWhateverRunsNow) {
  HostView busy = host("a", 8, 64, 2);
  busy.used = shape(8, 64, 2);
  busy.free_gpus.clear();
  busy.state = model::HostState::suspect;
  EXPECT_FALSE(never_fits({busy}, gang("j", {shape(8, 1, 2)}).members));
}

State random_state(SeededRng& rng) {
  State state;
  const auto hosts = 1 + rng.below(4);
  for (std::uint64_t i = 0; i < hosts; ++i) {
    state.hosts.push_back(host("h" + std::to_string(i), 1 + static_cast<std::int64_t>(rng.below(16)),
                               1 + static_cast<std::int64_t>(rng.below(32)), static_cast<std::int32_t>(rng.below(5))));
    if (rng.chance(0.1)) state.hosts.back().state = model::HostState::offline;
  }
  const auto jobs = rng.below(12);
  for (std::uint64_t i = 0; i < jobs; ++i) {
    std::vector<model::Resources> sizes;
    const auto nodes = 1 + rng.below(4);
    for (std::uint64_t n = 0; n < nodes; ++n) {
      sizes.push_back(shape(1 + static_cast<std::int64_t>(rng.below(6)), 1 + static_cast<std::int64_t>(rng.below(8)),
                            static_cast<std::int32_t>(rng.below(3))));
    }
    state.queue.push_back(
        gang("j-" + std::to_string(i), sizes, static_cast<std::int64_t>(rng.below(5)), 1 + static_cast<std::int32_t>(rng.below(9))));
  }
  return state;
}

TEST(PlanAdmissionsProperty, NeverOverAllocatesNeverSplitsAGangAndIsDeterministic) {
  SeededRng rng(7);
  for (int round = 0; round < 2000; ++round) {
    State state = random_state(rng);
    const Plan plan = plan_admissions(state, {});
    ASSERT_EQ(plan.admit.size() + plan.wait.size(), state.queue.size());

    std::map<HostId, model::Resources> used;
    std::map<HostId, std::set<std::int32_t>> gpus;
    for (const auto& admission : plan.admit) {
      const auto asked = std::ranges::find(state.queue, admission.job, &Gang::job);
      ASSERT_EQ(admission.placement.size(), asked->members.size());
      for (std::size_t i = 0; i < asked->members.size(); ++i) {
        const auto& place = admission.placement[i];
        ASSERT_EQ(place.resources, asked->members[i].resources);
        ASSERT_EQ(static_cast<std::int32_t>(place.gpus.size()), place.resources.gpus);
        used[place.host] += place.resources;
        for (const auto gpu : place.gpus) ASSERT_TRUE(gpus[place.host].insert(gpu).second) << "one GPU given twice";
      }
    }
    for (const auto& view : state.hosts) {
      ASSERT_TRUE(used[view.id].fits_in(view.capacity));
      if (view.state != model::HostState::ready) ASSERT_EQ(used[view.id], model::Resources{});
    }

    // The same question in another order has the same answer.
    std::ranges::reverse(state.queue);
    std::ranges::reverse(state.hosts);
    const Plan again = plan_admissions(state, {});
    ASSERT_EQ(admitted(again), admitted(plan));
    for (std::size_t i = 0; i < plan.admit.size(); ++i) {
      for (std::size_t n = 0; n < plan.admit[i].placement.size(); ++n) {
        ASSERT_EQ(again.admit[i].placement[n].host, plan.admit[i].placement[n].host);
        ASSERT_EQ(again.admit[i].placement[n].gpus, plan.admit[i].placement[n].gpus);
      }
    }
    if (!plan.wait.empty() && !plan.admit.empty()) {
      // Whoever waits stands behind everyone who was admitted.
      const auto key = [&](const JobId& id) {
        const auto& g = *std::ranges::find(state.queue, id, &Gang::job);
        return std::tuple(-g.priority, g.queued_since, g.job);
      };
      ASSERT_LT(key(plan.admit.back().job), key(plan.wait.front().job));
    }
  }
}

TEST(NeverFitsProperty, AGangThatFitsSomedayIsAdmittedOnAnEmptyPool) {
  SeededRng rng(11);
  for (int round = 0; round < 1000; ++round) {
    State state = random_state(rng);
    for (auto& view : state.hosts) view.state = model::HostState::ready;
    for (const Gang& one : state.queue) {
      const bool fits = !never_fits(state.hosts, one.members);
      ASSERT_EQ(plan_admissions(State{state.hosts, {one}}, {}).admit.size(), fits ? 1U : 0U);
    }
  }
}

}  // namespace
}  // namespace helio::sched
