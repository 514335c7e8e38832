#include "cli/client_python.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "proc/process.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace helio::cli {
namespace {

constexpr Duration kPatience = 20s;
constexpr std::string_view kMark = "helio-probe:";
/// What is installed says its version without being imported, which for Ray takes seconds.
constexpr const char* kQuestion = R"(import json, platform
try:
    from importlib.metadata import version
    ray = version("ray")
except Exception:
    ray = ""
print("helio-probe:" + json.dumps({"python": platform.python_version(), "ray": ray}))
)";

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// python, python3, python3.11
bool is_python_name(std::string_view name) {
  if (!name.starts_with("python")) return false;
  name.remove_prefix(std::string_view("python").size());
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') return false;
  }
  return true;
}

std::optional<std::string> look_up(const std::string& program, std::string_view path) {
  if (program.contains('/')) return ::access(program.c_str(), X_OK) == 0 ? std::optional(program) : std::nullopt;
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    const std::string candidate = (folder.empty() ? "." : std::string(folder)) + "/" + program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == std::string_view::npos) return std::nullopt;
    path.remove_prefix(colon + 1);
  }
}

/// "#!/usr/bin/env -S python3 -u" -> {"/usr/bin/env", "-S", "python3", "-u"}
std::vector<std::string> first_line_of_script(const std::string& path) {
  std::array<char, 512> buffer{};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  ::close(fd);
  std::string_view line(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = line.find_first_of(" \t\r");
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end, line.size()));
  }
  return words;
}

std::string minor_of(const std::string& version) {
  const std::size_t first = version.find('.');
  return version.substr(0, first == std::string::npos ? first : version.find('.', first + 1));
}

}  // namespace

std::optional<std::string> interpreter_of(const std::string& program, const std::string& path) {
  const auto found = look_up(program, path);
  if (!found) return std::nullopt;
  if (is_python_name(base_name(*found))) return found;
  for (const std::string& word : first_line_of_script(*found)) {
    if (is_python_name(base_name(word))) return look_up(word, path);
    const bool on_the_way = base_name(word) == "env" || word.starts_with('-');
    if (!on_the_way) return std::nullopt;
  }
  return std::nullopt;
}

Result<RayAndPython> ask_python(const std::string& interpreter, const std::vector<std::string>& env) {
  std::array<char, 4096> here{};
  proc::SpawnOptions options;
  options.argv = {interpreter, "-c", kQuestion};
  options.env = env;
  options.cwd = ::getcwd(here.data(), here.size()) == nullptr ? "/" : here.data();
  const auto output = proc::run_and_capture(options, kPatience);
  if (!output) return fail(ErrorCode::precondition_failed, "{} does not say which Ray it has: {}", interpreter, output.error().message());
  const std::size_t at = output->find(kMark);
  const std::string line = at == std::string::npos ? "null" : output->substr(at + kMark.size());
  const auto answer = json::parse(line.substr(0, line.find('\n')));
  const json::Object* facts = answer ? answer->if_object() : nullptr;
  if (facts == nullptr) return fail(ErrorCode::precondition_failed, "{} does not answer as a Python does", interpreter);
  const auto text = [facts](const char* name) {
    const json::Value* value = facts->if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  return RayAndPython{text("ray"), text("python")};
}

std::optional<std::string> why_no_client(const RayAndPython& cluster, const std::string& interpreter, const RayAndPython& program,
                                         const std::string& own) {
  const bool python_fits = cluster.python.empty() || program.python.empty() || minor_of(cluster.python) == minor_of(program.python);
  if (python_fits && program.ray == cluster.ray) return std::nullopt;
  const std::string has = program.ray.empty() ? fmt::format("has no Ray (it is Python {})", program.python)
                                              : fmt::format("has Ray {} on Python {}", program.ray, program.python);
  const std::string wanted = cluster.python.empty() ? std::string() : " on Python " + minor_of(cluster.python);
  std::string out = fmt::format("the cluster runs Ray {}{}, and {} {}: Ray Client needs the same Ray and the same minor version of Python.",
                                cluster.ray, wanted, interpreter, has);
  if (python_fits) {
    out += fmt::format(" Either `{} -m pip install 'ray[client]=={}'`", interpreter, cluster.ray);
  } else {
    out += fmt::format(" Either a virtual environment: `python{0} -m venv v && v/bin/pip install 'ray[client]=={1}'`, then v/bin/python",
                       minor_of(cluster.python), cluster.ray);
  }
  if (!own.empty()) out += fmt::format(", or the cluster's own Python, which is on this machine: {}", own);
  if (!program.ray.empty()) out += fmt::format("; or submit the job on an image with Ray {} and that Python", program.ray);
  return out + ". --any-version tries all the same.";
}

}  // namespace helio::cli
