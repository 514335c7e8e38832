#include "node/diagnosis.h"

#include <array>
#include <utility>

namespace helio::node {

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t from = text.find_first_not_of(kSpace);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

/// Without terminal colours.
std::string plain(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      out.push_back(text[i]);
      continue;
    }
    while (i < text.size() && text[i] != 'm') ++i;
  }
  return out;
}

}  // namespace

StartReport read_start_report(std::string_view coloured) {
  StartReport report;
  const std::string log_tail = plain(coloured);
  const std::size_t at = log_tail.rfind("subprocesses exited unexpectedly");
  if (at == std::string::npos) return report;
  std::string_view rest = std::string_view(log_tail).substr(at);
  // Lines such as "  raylet [exit code=-9]".
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t bracket = line.find(" [exit code=");
    if (bracket == std::string_view::npos) continue;
    std::string_view name = line.substr(0, bracket);
    if (const std::size_t space = name.rfind(' '); space != std::string_view::npos) name = name.substr(space + 1);
    if (name == "gcs_server") {
      report.gcs = true;
    } else if (name == "raylet") {
      report.raylet = true;
    } else if (name == "dashboard") {
      report.dashboard = true;
    } else if (report.other.empty()) {
      report.other = name;
    }
  }
  return report;
}

StartFinding read_start_problem(std::string_view log_tail, std::optional<std::int32_t> exit_code) {
  constexpr std::array kTexts{
      std::pair{"The specified port is", StartProblem::port_in_use},
      std::pair{"ddress already in use", StartProblem::port_in_use},
      std::pair{"port is already in use", StartProblem::port_in_use},
      std::pair{"is already occupied", StartProblem::port_in_use},
      std::pair{"Failed to bind", StartProblem::port_in_use},
      std::pair{"is already used", StartProblem::port_in_use},
      std::pair{"does not match persisted value", StartProblem::port_in_use},  // another cluster's GCS answered
      std::pair{"No module named", StartProblem::image_broken},
      std::pair{"ImportError", StartProblem::image_broken},
      std::pair{"No such option", StartProblem::image_broken},
      std::pair{"no such option", StartProblem::image_broken},
      std::pair{"bad interpreter", StartProblem::image_broken},
      std::pair{"cannot open shared object", StartProblem::image_broken},
  };
  StartFinding finding{StartProblem::unknown, last_line(log_tail)};
  for (const auto& [text, problem] : kTexts) {
    const std::size_t at = log_tail.find(text);
    if (at == std::string_view::npos) continue;
    const std::size_t from = log_tail.rfind('\n', at) + 1;  // npos + 1 is the beginning
    // From the text itself when its line is long: Ray puts pages in front.
    const std::size_t end = log_tail.find('\n', at);
    const std::string_view line = log_tail.substr(from, end == std::string_view::npos ? end : end - from);
    finding = {problem, last_line(line.size() <= 300 ? line : line.substr(at - from))};
    break;
  }
  if (exit_code == 127 || exit_code == 126) finding.problem = StartProblem::image_broken;
  return finding;
}

DriverProblem read_driver_problem(std::string_view error_type, std::string_view message) {
  constexpr std::array kTypes{
      std::pair{"RUNTIME_ENV_SETUP_FAILURE", DriverProblem::runtime_env},
      std::pair{"JOB_SUPERVISOR_ACTOR_START_TIMEOUT", DriverProblem::start_timeout},
      std::pair{"JOB_SUPERVISOR_ACTOR_START_FAILURE", DriverProblem::supervisor},
      std::pair{"JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE", DriverProblem::unschedulable},
      std::pair{"JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE", DriverProblem::supervisor},
      std::pair{"JOB_SUPERVISOR_ACTOR_DIED", DriverProblem::supervisor},
      std::pair{"JOB_ENTRYPOINT_COMMAND_START_ERROR", DriverProblem::not_started},
      std::pair{"JOB_ENTRYPOINT_COMMAND_ERROR", DriverProblem::none},
  };
  for (const auto& [type, problem] : kTypes) {
    if (error_type == type) return problem;
  }
  // The entrypoint's own failure first: its message quotes the last lines of the log, which may contain any text.
  if (message.starts_with("Job entrypoint command failed with exit code") || has(message.substr(0, 200), "failed with exit code")) {
    return DriverProblem::none;
  }
  constexpr std::array kTexts{
      std::pair{"runtime_env setup failed", DriverProblem::runtime_env},
      std::pair{"Failed to set up runtime environment", DriverProblem::runtime_env},
      std::pair{"supervisor actor could not be scheduled", DriverProblem::unschedulable},
      std::pair{"RAY_JOB_START_TIMEOUT_SECONDS", DriverProblem::start_timeout},
      std::pair{"supervisor actor died", DriverProblem::supervisor},
      std::pair{"Unexpected error occurred", DriverProblem::supervisor},
      std::pair{"Failed to start supervisor actor", DriverProblem::supervisor},
      std::pair{"Traceback (most recent call last)", DriverProblem::not_started},
  };
  for (const auto& [text, problem] : kTexts) {
    if (has(message, text)) return problem;
  }
  return DriverProblem::none;
}

std::string last_line(std::string_view coloured) {
  const std::string kept = plain(coloured);
  std::string_view text = trim(kept);
  const std::size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) text = trim(text.substr(newline + 1));
  return std::string(text.substr(0, 300));
}

}  // namespace helio::node
