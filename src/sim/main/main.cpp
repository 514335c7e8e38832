// helio-sim: the whole control plane on virtual time, many seeds. See docs/design.md section 13 and src/sim/README.md.

#include "base/error.h"
#include "base/log.h"
#include "sim/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using helio::sim::Bug;
using helio::sim::Outcome;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t count = 200;
  unsigned jobs = 1;
  bool verbose = false;
  bool bugs = false;
  Bug bug = Bug::none;
};

constexpr std::string_view kUsage =
    "helio-sim [--seed N] [--count M] [--jobs N] [--verbose] [--bug NAME] [--bugs]\n"
    "  --seed N    first seed (1)\n"
    "  --count M   how many worlds (200; with --bugs: at most so many for each bug)\n"
    "  --jobs N    worlds at once (1)\n"
    "  --verbose   the last events of each world\n"
    "  --bug NAME  plants a bug, which is to be found\n"
    "  --bugs      plants each bug in turn and prints the seed that finds it\n";

bool number(std::string_view text, std::uint64_t& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

/// Empty when all is well, else what is wrong.
std::string parse(const std::vector<std::string_view>& args, Options& out) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view flag = args[i];
    if (flag == "--verbose") {
      out.verbose = true;
      continue;
    }
    if (flag == "--bugs") {
      out.bugs = true;
      continue;
    }
    if (flag != "--seed" && flag != "--count" && flag != "--jobs" && flag != "--bug") return fmt::format("unknown argument {}", flag);
    if (i + 1 == args.size()) return fmt::format("{} needs a value", flag);
    const std::string_view value = args[++i];
    std::uint64_t parsed = 0;
    if (flag == "--bug") {
      const auto bug = helio::sim::bug_by_name(value);
      if (!bug) return fmt::format("no bug '{}'", value);
      out.bug = *bug;
    } else if (!number(value, parsed)) {
      return fmt::format("{} needs a number, not '{}'", flag, value);
    } else if (flag == "--seed") {
      out.seed = parsed;
    } else if (flag == "--count") {
      out.count = parsed;
    } else {
      out.jobs = static_cast<unsigned>(std::max<std::uint64_t>(1, std::min<std::uint64_t>(parsed, 64)));
    }
  }
  return {};
}

/// A folder of this process that is removed at its end.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/helio-sim.XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string part(unsigned worker) const {
    std::string part = fmt::format("{}/{}", path_, worker);
    std::filesystem::create_directories(part);
    return part;
  }

 private:
  std::string path_;
};

void show(const Outcome& outcome, bool failed) {
  for (const std::string& line : outcome.story) fmt::print("    {}\n", line);
  if (failed) {
    for (const std::string& breach : outcome.breaches) fmt::print("  seed {}: {}\n", outcome.seed, breach);
  } else {
    fmt::print("  seed {}: {} jobs, {} attempts, {} daemons, {} crashes between writes, {} revisions, {:.0f} s of virtual time\n",
               outcome.seed, outcome.jobs, outcome.attempts, outcome.daemons, outcome.crashes, outcome.writes, outcome.virtual_seconds);
  }
}

int run_seeds(const Options& options, const Folder& folder) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> passed{0};
  std::mutex mutex;
  std::map<std::uint64_t, Outcome> failures;
  Outcome sum;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&](unsigned worker) {
    const std::string part = folder.part(worker);
    for (std::uint64_t i = next++; i < options.count; i = next++) {
      Outcome outcome = helio::sim::run_world(options.seed + i, options.bug, part);
      const std::lock_guard lock(mutex);
      sum.jobs += outcome.jobs;
      sum.attempts += outcome.attempts;
      sum.daemons += outcome.daemons;
      sum.crashes += outcome.crashes;
      sum.steps += outcome.steps;
      if (outcome.breaches.empty()) {
        ++passed;
        if (options.verbose) show(outcome, false);
      } else {
        failures.emplace(outcome.seed, std::move(outcome));
      }
    }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < options.jobs; ++i) workers.emplace_back(work, i);
  work(0);
  workers.clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const auto& [seed, outcome] : failures) {
    fmt::print("FAILED seed {} (replay: helio-sim --seed {} --count 1 --verbose)\n", seed, seed);
    if (failures.begin()->first == seed || options.verbose)
      show(outcome, true);
    else
      fmt::print("  {}\n", outcome.breaches.front());
  }
  fmt::print("{} jobs, {} attempts, {} daemons, {} crashes between writes, {} steps; {:.0f} worlds/s\n", sum.jobs, sum.attempts,
             sum.daemons, sum.crashes, sum.steps, static_cast<double>(options.count) / seconds);
  fmt::print("{} passed, {} failed\n", passed.load(), failures.size());
  return failures.empty() ? 0 : 1;
}

int run_bugs(const Options& options, const Folder& folder) {
  const std::string part = folder.part(0);
  std::size_t found = 0;
  fmt::print("{:<18} {:>6}  {}\n", "planted bug", "seed", "found by");
  for (const helio::sim::BugInfo& info : helio::sim::all_bugs()) {
    Outcome caught;
    for (std::uint64_t i = 0; i < options.count && caught.breaches.empty(); ++i) {
      Outcome outcome = helio::sim::run_world(options.seed + i, info.bug, part);
      if (!outcome.breaches.empty()) caught = std::move(outcome);
    }
    if (caught.breaches.empty()) {
      fmt::print("{:<18} {:>6}  NOT FOUND in {} seeds: {}\n", info.name, "-", options.count, info.what);
      continue;
    }
    ++found;
    fmt::print("{:<18} {:>6}  {}\n", info.name, caught.seed, caught.breaches.front());
    std::fflush(stdout);
  }
  const std::size_t all = helio::sim::all_bugs().size();
  fmt::print("{} passed, {} failed\n", found, all - found);
  return found == all ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const std::string wrong = parse({argv + 1, argv + argc}, options); !wrong.empty()) {
    fmt::print(stderr, "{}\n{}", wrong, kUsage);
    return helio::cli_exit_code(helio::ErrorCode::invalid_argument);
  }
  // What daemons log about faults that were planted is no news, unless somebody looks.
  if (!options.verbose) static_cast<void>(std::freopen("/dev/null", "w", stderr));
  const Folder folder;
  if (folder.path().empty()) {
    fmt::print(stderr, "cannot make a folder in /tmp\n");
    return helio::cli_exit_code(helio::ErrorCode::unavailable);
  }
  return options.bugs ? run_bugs(options, folder) : run_seeds(options, folder);
}
