#include "sched/sched.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>

namespace helio::sched {
namespace {

using model::Resources;

constexpr std::size_t kAheadShown = 10;

/// One host while a decision is being made.
struct Bin {
  const HostView* host = nullptr;
  Resources free;
  std::vector<std::int32_t> gpus;  ///< free indices, ascending
};

Bin bin_of(const HostView& host) {
  Bin bin{&host, host.capacity, host.free_gpus};
  bin.free -= host.used;
  std::ranges::sort(bin.gpus);
  bin.free.gpus = static_cast<std::int32_t>(bin.gpus.size());
  return bin;
}

std::vector<Bin> bins_of(const std::vector<HostView>& hosts) {
  std::vector<Bin> bins;
  for (const HostView& host : hosts) {
    if (host.state == model::HostState::ready) bins.push_back(bin_of(host));
  }
  std::ranges::sort(bins, {}, [](const Bin& b) { return b.host->id; });
  return bins;
}

/// Scarcest first: what is left of GPUs, then CPUs, then memory.
auto leftover(const Bin& bin, const Resources& wanted) {
  return std::tuple(bin.free.gpus - wanted.gpus, bin.free.cpu.n - wanted.cpu.n, bin.free.memory.n - wanted.memory.n, bin.host->id);
}

auto size_of(const Resources& r) { return std::tuple(r.gpus, r.cpu.n, r.memory.n, r.shm.n); }

/// Places every member or none: the largest first, each on the host that it fills best. `bins` change only on success.
std::optional<std::vector<model::Placement>> pack(std::vector<Bin>& bins, const std::vector<Member>& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Ties keep the order of the members: the index is part of the key.
  std::ranges::sort(order, std::ranges::greater{},
                    [&](std::size_t i) { return std::tuple(size_of(members[i].resources), members.size() - i); });

  std::vector<Bin> trial = bins;
  std::vector<model::Placement> placed(members.size());
  for (const std::size_t i : order) {
    const Member& member = members[i];
    Bin* best = nullptr;
    for (Bin& bin : trial) {
      if (!member.resources.fits_in(bin.free)) continue;
      if (best == nullptr || leftover(bin, member.resources) < leftover(*best, member.resources)) best = &bin;
    }
    if (best == nullptr) return std::nullopt;
    best->free -= member.resources;
    model::Placement& place = placed[i];
    place.host = best->host->id;
    place.role = member.role;
    place.index = member.index;
    place.group = member.group;
    place.flavor = member.flavor;
    place.resources = member.resources;
    const auto count = static_cast<std::ptrdiff_t>(member.resources.gpus);
    place.gpus.assign(best->gpus.begin(), best->gpus.begin() + count);
    best->gpus.erase(best->gpus.begin(), best->gpus.begin() + count);
  }
  bins = std::move(trial);
  return placed;
}

Resources sum(const std::vector<Member>& members) {
  Resources total;
  for (const Member& member : members) total += member.resources;
  return total;
}

Resources sum_free(const std::vector<Bin>& bins) {
  Resources total;
  for (const Bin& bin : bins) total += bin.free;
  return total;
}

/// A resource by name: what is wanted and what there is, as numbers and for people.
struct Shortage {
  std::string_view constraint;
  std::string needed;
  std::string there;
  std::string more;
};

std::optional<Shortage> shortage(const Resources& needed, const Resources& there) {
  if (needed.gpus > there.gpus) {
    return Shortage{"gpus", fmt::format("{} GPUs", needed.gpus), fmt::format("{}", there.gpus),
                    fmt::format("{} more GPUs", needed.gpus - there.gpus)};
  }
  if (needed.cpu > there.cpu) {
    return Shortage{"cpu", format_cpu(needed.cpu) + " CPUs", format_cpu(there.cpu), format_cpu(needed.cpu - there.cpu) + " more CPUs"};
  }
  if (needed.memory > there.memory) {
    return Shortage{"memory", format_bytes(needed.memory) + " of memory", format_bytes(there.memory),
                    format_bytes(needed.memory - there.memory) + " more memory"};
  }
  if (needed.shm > there.shm) {
    return Shortage{"shm", format_bytes(needed.shm) + " of shared memory", format_bytes(there.shm),
                    format_bytes(needed.shm - there.shm) + " more shared memory"};
  }
  return std::nullopt;
}

void explain_refusal(Refusal& refusal, const std::vector<Bin>& bins) {
  if (bins.empty()) {
    refusal.constraint = "no_host";
    refusal.message = "no host of the pool is ready";
    return;
  }
  if (const auto lack = shortage(refusal.needed, refusal.free)) {
    refusal.constraint = lack->constraint;
    refusal.message = fmt::format("needs {}, {} free: starts with {}", lack->needed, lack->there, lack->more);
    return;
  }
  refusal.constraint = "no_host";
  refusal.message = "enough is free in sum, but no host has room for one of the nodes: starts when a host is emptied further";
}

std::string shape(const Resources& r) {
  std::string text = format_cpu(r.cpu) + " CPUs, " + format_bytes(r.memory) + " of memory";
  if (r.gpus > 0) text += fmt::format(", {} GPUs", r.gpus);
  return text;
}

}  // namespace

Plan plan_admissions(const State& state, Timestamp now) {
  Plan plan;
  std::vector<Bin> bins = bins_of(state.hosts);
  std::vector<const Gang*> order;
  order.reserve(state.queue.size());
  for (const Gang& gang : state.queue) order.push_back(&gang);
  std::ranges::sort(order, {}, [](const Gang* g) { return std::tuple(-g->priority, g->queued_since, g->job); });

  std::vector<JobId> ahead;
  std::int32_t waiting = 0;
  for (const Gang* gang : order) {
    Refusal refusal;
    refusal.job = gang->job;
    if (gang->not_before && *gang->not_before > now) {
      refusal.constraint = "back-off";
      refusal.needed = sum(gang->members);
      refusal.free = sum_free(bins);
      refusal.message = "waits until its back-off has passed, in " + format_duration(*gang->not_before - now);
      plan.wait.push_back(std::move(refusal));
      continue;
    }
    if (waiting == 0) {
      if (auto placed = pack(bins, gang->members)) {
        plan.admit.push_back({gang->job, std::move(*placed)});
        continue;
      }
    }
    refusal.position = ++waiting;
    refusal.ahead = ahead;
    refusal.needed = sum(gang->members);
    refusal.free = sum_free(bins);
    if (waiting == 1) {
      explain_refusal(refusal, bins);
    } else {
      refusal.constraint = "order";
      refusal.message = waiting == 2 ? fmt::format("waits behind {}", ahead.front().value)
                                     : fmt::format("waits behind {} and {} more", ahead.front().value, waiting - 2);
    }
    if (ahead.size() < kAheadShown) ahead.push_back(gang->job);
    plan.wait.push_back(std::move(refusal));
  }
  return plan;
}

std::optional<Misfit> never_fits(const std::vector<HostView>& hosts, const std::vector<Member>& members) {
  std::vector<HostView> empty = hosts;
  for (HostView& host : empty) {
    host.state = model::HostState::ready;
    host.used = {};
    host.free_gpus.resize(static_cast<std::size_t>(std::max(0, host.capacity.gpus)));
    std::iota(host.free_gpus.begin(), host.free_gpus.end(), 0);
  }
  const std::vector<Bin> bins = bins_of(empty);
  const auto fits = [&](const std::vector<Member>& some) {
    std::vector<Bin> trial = bins;
    return pack(trial, some).has_value();
  };
  if (fits(members)) return std::nullopt;

  // The first group that makes it impossible, counted on top of all that stands before it.
  std::vector<Member> before;
  for (std::size_t begin = 0; begin < members.size();) {
    std::size_t end = begin;
    while (end < members.size() && members[end].role == members[begin].role && members[end].group == members[begin].group) ++end;
    std::vector<Member> with = before;
    with.insert(with.end(), members.begin() + static_cast<std::ptrdiff_t>(begin), members.begin() + static_cast<std::ptrdiff_t>(end));
    if (fits(with)) {
      before = std::move(with);
      begin = end;
      continue;
    }
    std::size_t low = 0;
    std::size_t high = end - begin;  // fits(low), not fits(high)
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      const std::vector<Member> some(with.begin(), with.begin() + static_cast<std::ptrdiff_t>(before.size() + middle));
      (fits(some) ? low : high) = middle;
    }
    Misfit misfit;
    misfit.group = members[begin].role == model::Role::head ? "head" : members[begin].group;
    misfit.largest_count = static_cast<std::int32_t>(low);
    const Resources each = members[begin].resources;
    const Resources needed = sum(with);
    const Resources there = sum_free(bins);
    const auto lack = shortage(needed, there);
    misfit.constraint = lack ? lack->constraint : "no_host";
    if (misfit.group == "head") {
      misfit.message = lack ? fmt::format("the head of {} needs {}; the pool has {}", shape(each), lack->needed, lack->there)
                            : fmt::format("the head needs {} on one host; no host of the pool has that much", shape(each));
    } else {
      const std::string asked = fmt::format("{} workers of {}", end - begin, shape(each));
      misfit.message =
          lack ? fmt::format("{} and the nodes before them need {}; the pool has {}: at most {} fit", asked, lack->needed, lack->there, low)
               : fmt::format("{}: no host of the pool has room for more than {} of them", asked, low);
    }
    return misfit;
  }
  return std::nullopt;
}

}  // namespace helio::sched
