// completion: the scripts ask `helio __complete`, which walks the same command tree that parses.

#include "cli/api_client.h"
#include "cli/context.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace helio::cli {
namespace {

constexpr std::string_view kBash = R"(_helio() {
  local IFS=$'\n'
  COMPREPLY=($(helio __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _helio helio
)";
constexpr std::string_view kZsh = R"(#compdef helio
_helio() {
  local -a found
  found=("${(@f)$(helio __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _helio helio
)";
constexpr std::string_view kFish = R"(complete -c helio -f -a '(helio __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
)";

constexpr std::size_t kOfferedJobs = 50;

bool takes_job(const CLI::App& command) {
  return std::ranges::any_of(command.get_options(), [](const CLI::Option* o) { return o->get_positional() && o->get_name() == "job"; });
}

void offer(std::string_view candidate, std::string_view prefix) {
  if (candidate.starts_with(prefix)) fmt::print("{}\n", candidate);
}

void offer_jobs(const Context& context, std::string_view prefix) {
  offer("last", prefix);
  auto api = ApiClient::connect(context);
  if (!api || !daemon_answers((*api)->url(), 500ms, context.roots)) return;
  const auto items = (*api)->list("/v1/jobs", kOfferedJobs);
  if (!items) return;
  for (const json::Value& job : *items) {
    if (const json::Value* id = job.get_object().if_contains("id")) offer(std::string_view(id->get_string()), prefix);
  }
}

Result<int> complete(const CLI::App& root, const Context& context) {
  const std::vector<std::string>& words = context.rest;
  const std::string last = words.empty() ? std::string() : words.back();
  const CLI::App* command = &root;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--") return 0;
    const auto below = command->get_subcommands([&](const CLI::App* sub) { return sub->check_name(words[i]); });
    if (!below.empty()) command = below.front();
  }
  if (last.starts_with('-')) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) offer("--" + name, last);
    }
    for (const CLI::Option* option : root.get_options()) {
      for (const std::string& name : option->get_lnames()) offer("--" + name, last);
    }
    return 0;
  }
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App* s) { return !s->get_name().starts_with("__"); })) {
    offer(sub->get_name(), last);
  }
  if (takes_job(*command)) offer_jobs(context, last);
  return 0;
}

Result<int> print_script(const std::string& shell) {
  const std::string_view script = shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
  std::fwrite(script.data(), 1, script.size(), stdout);
  return 0;
}

}  // namespace

void add_completion_commands(CLI::App& app, Context& context) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* script = app.add_subcommand("completion", "completion script for bash, zsh or fish: source <(helio completion bash)");
  script->add_option("shell", *shell)->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  script->callback([&context, shell] { context.action = [shell] { return print_script(*shell); }; });

  CLI::App* hidden = app.add_subcommand("__complete", "candidates for the last word after --")->group("");
  hidden->callback([&context, &app] { context.action = [&context, &app] { return complete(app, context); }; });
}

}  // namespace helio::cli
