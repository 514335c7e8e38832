#include "cli/hints.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.contains(static_cast<char>(c));
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string line_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += " " + quoted(word);
  return out;
}

bool is_job_file_name(const std::string& word) {
  const std::string suffix = fs::path(word).extension().string();
  return suffix == ".yaml" || suffix == ".yml" || suffix == ".json";
}

bool exists(const std::string& word) {
  std::error_code error;
  return fs::exists(word, error);
}

/// `args` without `taken`, which are among them in this order.
std::vector<std::string> without(const std::vector<std::string>& args, const std::vector<std::string>& taken) {
  std::vector<std::string> out;
  std::size_t next = 0;
  for (const std::string& word : args) {
    if (next < taken.size() && word == taken[next]) {
      ++next;
    } else {
      out.push_back(word);
    }
  }
  return out;
}

}  // namespace

bool takes_command(const std::string& name) { return name == "run" || name == "submit" || name == "exec" || name == "connect"; }

std::string unexpected_words(const std::string& name, const std::vector<std::string>& args, const std::vector<std::string>& extras) {
  const std::string& first = extras.front();
  if (first.starts_with('-')) return fmt::format("no option '{}'; `helio {} --help` lists them", first, name);
  if (name == "run" && is_job_file_name(first) && exists(first)) {
    return fmt::format("a job file goes with -f: helio run -f {0} (or: helio submit {0})", quoted(first));
  }
  if (!takes_command(name)) return fmt::format("not expected:{}; `helio {} --help` tells more", line_of(extras), name);
  std::vector<std::string> command = extras;
  if (name == "submit") {
    // Its first word was taken for a job file.
    const auto before = std::ranges::find(args, first);
    const bool word = before != args.begin() && before != args.end() && !(before - 1)->starts_with('-') && !is_job_file_name(*(before - 1));
    if (word) command.insert(command.begin(), *(before - 1));
  }
  return fmt::format("put -- before the command: helio {}{} --{}", name, line_of(without(args, command)), line_of(command));
}

std::optional<std::string> no_job_file(const std::string& word) {
  if (word.empty() || is_job_file_name(word)) return std::nullopt;
  if (!exists(word)) {
    return fmt::format("there is no job file {}; if it is a command, put -- before it: helio submit -- {}", word, quoted(word));
  }
  if (fs::path(word).extension() == ".py") {
    return fmt::format("{} is no job file (YAML or JSON); to run it: helio submit --working-dir . -- python {}", word, quoted(word));
  }
  return std::nullopt;
}

std::optional<std::string> file_left_behind(const std::vector<std::string>& argv) {
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    // The first word without a slash is looked up in PATH, not in this folder.
    if (word.empty() || word.starts_with('-') || word.starts_with('/') || (i == 0 && !word.contains('/'))) continue;
    std::error_code error;
    if (fs::is_regular_file(word, error)) return word;
  }
  return std::nullopt;
}

}  // namespace helio::cli
