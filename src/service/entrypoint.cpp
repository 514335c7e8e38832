#include "service/entrypoint.h"

#include "service/fields.h"

#include <algorithm>
#include <array>

namespace helio::service {
namespace {

/// Linux starts no program with a longer argument, and Ray hands the whole entrypoint to a shell as one.
constexpr std::size_t kMaxLine = 120 * 1024;
constexpr std::size_t kMaxScript = 1024 * 1024;

constexpr std::array<std::string_view, 3> kLanguages{"bash", "sh", "python"};

Result<void> check_argv(const std::vector<std::string>& argv) {
  const std::string path = "$.entrypoint.argv";
  if (argv.empty()) return wrong(path, "the entrypoint is empty; expected a program and its arguments, such as [\"python\", \"train.py\"]");
  if (is_blank(argv.front())) return wrong(element(path, 0), "the program to run is empty");
  std::size_t total = 0;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (has_nul(argv[i])) return wrong(element(path, i), "an argument cannot hold a NUL byte");
    total += argv[i].size() + 3;  // quotes and a blank
    total += static_cast<std::size_t>(std::ranges::count(argv[i], '\'')) * 3;
    if (total > kMaxLine) return wrong(element(path, i), "the arguments have more than {} bytes together; put them into a file", kMaxLine);
  }
  return {};
}

Result<void> check_command(std::string& command) {
  const std::string path = "$.entrypoint.command";
  if (is_blank(command)) return wrong(path, "the entrypoint is empty; expected a shell line such as \"python train.py\"");
  if (has_nul(command)) return wrong(path, "a command cannot hold a NUL byte");
  command.erase(command.find_last_not_of(" \t\r\n") + 1);
  command.erase(0, command.find_first_not_of(" \t\r\n"));
  if (command.contains('\n')) return wrong(path, "a command is one line; put several lines into 'script'");
  if (command.size() > kMaxLine)
    return wrong(path, "the command has {} bytes; at most {} are allowed; use 'script'", command.size(), kMaxLine);
  return {};
}

Result<void> check_script(const std::string& script) {
  const std::string path = "$.entrypoint.script";
  if (is_blank(script)) return wrong(path, "the entrypoint is empty; expected the text of a script");
  if (has_nul(script)) return wrong(path, "a script cannot hold a NUL byte");
  if (script.size() > kMaxScript) return wrong(path, "the script has {} bytes; at most {} are allowed", script.size(), kMaxScript);
  return {};
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool interpreter(std::string_view program) {
  return program.starts_with("python") || program == "bash" || program == "sh" || program == "env" || program == "uv" || program == "run";
}

std::vector<std::string> words_of(const model::Entrypoint& entrypoint) {
  if (entrypoint.argv) return *entrypoint.argv;
  std::vector<std::string> words;
  const std::string_view line = entrypoint.command ? std::string_view(*entrypoint.command) : std::string_view();
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    words.emplace_back(line.substr(begin, at - begin));
  }
  return words;
}

bool is_assignment(std::string_view word) { return word.contains('=') && !word.starts_with('-') && word.find('/') > word.find('='); }

}  // namespace

Result<void> resolve_entrypoint(model::Entrypoint& entrypoint) {
  const int given = (entrypoint.argv ? 1 : 0) + (entrypoint.command ? 1 : 0) + (entrypoint.script ? 1 : 0);
  if (given == 0) return wrong("$.entrypoint", "the entrypoint is empty; expected one of argv, command, script");
  if (given > 1) return wrong("$.entrypoint", "expected exactly one of argv, command, script; {} are given", given);
  if (!is_one_of(entrypoint.language, kLanguages)) {
    return wrong("$.entrypoint.language", "unknown language '{}'; expected bash, sh or python", entrypoint.language);
  }
  if (!entrypoint.script && entrypoint.language != "bash") {
    return wrong("$.entrypoint.language", "is the language of 'script', and there is none");
  }
  if (entrypoint.argv) return check_argv(*entrypoint.argv);
  if (entrypoint.command) return check_command(*entrypoint.command);
  return check_script(*entrypoint.script);
}

std::string default_name(const model::Entrypoint& entrypoint) {
  if (entrypoint.script) return "script";
  const std::vector<std::string> words = words_of(entrypoint);
  std::string first;
  for (const std::string& word : words) {
    if (is_assignment(word) && first.empty()) continue;
    const std::string_view name = base_name(word);
    if (first.empty()) first = name;
    if (interpreter(name)) continue;
    // `python -c …` and `python -m module`: only a file tells more than the interpreter.
    if (word.starts_with('-')) break;
    first = name;
    break;
  }
  std::string out;
  for (const char c : first.substr(0, 60)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '"' && c != '\'') out += c;
  }
  return out.empty() ? "job" : out;
}

std::vector<std::string> entrypoint_warnings(const model::Entrypoint& entrypoint) {
  std::vector<std::string> words = words_of(entrypoint);
  for (std::string& word : words) word = base_name(word);
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "ray") continue;
    if (words[i + 1] == "start" || words[i + 1] == "up") {
      out.push_back(fmt::format("the entrypoint calls 'ray {}': the cluster is already there, ray.init() finds it", words[i + 1]));
    } else if (words[i + 1] == "job") {
      out.emplace_back("the entrypoint calls 'ray job': it already is a Ray job; run the program itself");
    }
  }
  return out;
}

}  // namespace helio::service
