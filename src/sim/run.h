#pragma once
// One world from its seed: jobs, faults, daemons that crash between any two writes, and the checks after every step.

#include "sim/bugs.h"

#include <cstdint>
#include <string>
#include <vector>

namespace helio::sim {

struct Outcome {
  std::uint64_t seed = 0;
  std::vector<std::string> breaches;  ///< empty: all invariants held
  std::vector<std::string> story;     ///< the last events before the end
  std::int64_t steps = 0;
  std::int64_t writes = 0;
  int daemons = 0;
  int crashes = 0;
  int jobs = 0;
  int attempts = 0;
  double virtual_seconds = 0;
};

/// `folder` is an existing empty folder for the files of jobs; several worlds may use it one after the other. Deterministic in (seed, bug).
Outcome run_world(std::uint64_t seed, Bug bug, const std::string& folder);

}  // namespace helio::sim
