#include "cli/spec_flags.h"

#include "base/json/yaml.h"
#include "cli/local_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

namespace helio::cli {
namespace {

using Pair = std::pair<std::string, std::string>;

/// The object at object[name], made when absent. A value of another kind in a job file is the daemon's to refuse, so it is replaced here
/// only when a flag asks for it.
json::Object& child(json::Object& object, std::string_view name) {
  json::Value& value = object[name];
  if (!value.is_object()) value = json::Object{};
  return value.get_object();
}

json::Array& array_child(json::Object& object, std::string_view name) {
  json::Value& value = object[name];
  if (!value.is_array()) value = json::Array{};
  return value.get_array();
}

void set_text(json::Object& object, std::string_view name, const std::string& value) {
  if (!value.empty()) object[name] = value;
}

Result<Pair> key_value(const std::string& flag, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return fail(ErrorCode::invalid_argument, "{} takes NAME=VALUE, not '{}'", flag, text);
  return Pair{text.substr(0, equals), text.substr(equals + 1)};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t at = text.find(by);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

Result<json::Object> worker_group(const std::string& text) {
  json::Object group;
  const auto wrong = [&] {
    return fail(ErrorCode::invalid_argument, "--workers takes N, N:FLAVOR or name=NAME,count=N,flavor=FLAVOR, not '{}'", text);
  };
  if (!text.contains('=')) {
    const std::size_t colon = text.find(':');
    const auto count = whole_number(std::string_view(text).substr(0, colon));
    if (!count) return wrong();
    group["count"] = *count;
    if (colon != std::string::npos) set_text(group, "flavor", text.substr(colon + 1));
    return group;
  }
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return wrong();
    const std::string key = part.substr(0, equals);
    const std::string value = part.substr(equals + 1);
    if (key == "count") {
      const auto count = whole_number(value);
      if (!count) return wrong();
      group["count"] = *count;
    } else if (key == "name" || key == "flavor") {
      group[key] = value;
    } else {
      return wrong();
    }
  }
  if (!group.contains("count")) return wrong();
  return group;
}

Result<void> apply_workers(const SpecFlags& flags, json::Object& spec) {
  if (flags.workers.empty()) return {};
  json::Array groups;
  for (const std::string& text : flags.workers) {
    HELIO_TRY(group, worker_group(text));
    const auto count = group.at("count").to_number<std::int64_t>();
    // "--workers 0" says: no workers, the head does the work.
    if (count == 0 && flags.workers.size() == 1) continue;
    if (!group.contains("name") && !groups.empty()) group["name"] = fmt::format("workers-{}", groups.size() + 1);
    groups.emplace_back(std::move(group));
  }
  spec["workers"] = std::move(groups);
  return {};
}

Result<void> add_variable(json::Array& env, const std::string& name, const std::string& value, bool secret) {
  // A flag wins over the same name from a file that was read before it.
  json::Array kept;
  for (json::Value& v : env) {
    const json::Object* o = v.if_object();
    const json::Value* n = o == nullptr ? nullptr : o->if_contains("name");
    if (n == nullptr || !n->is_string() || std::string_view(n->get_string()) != name) kept.push_back(std::move(v));
  }
  env = std::move(kept);
  json::Object variable{{"name", name}, {"value", value}};
  if (secret) variable["secret"] = true;
  env.emplace_back(std::move(variable));
  return {};
}

Result<void> add_variables(const std::string& flag, const std::vector<std::string>& texts, bool secret, const Environment& environment,
                           json::Array& env) {
  for (const std::string& text : texts) {
    if (!text.contains('=')) {
      const auto value = environment(text);
      if (!value) return fail(ErrorCode::invalid_argument, "{} {}: no such variable here; give {}=VALUE", flag, text, text);
      HELIO_CHECK_OK(add_variable(env, text, *value, secret));
      continue;
    }
    HELIO_TRY(pair, key_value(flag, text));
    HELIO_CHECK_OK(add_variable(env, pair.first, pair.second, secret));
  }
  return {};
}

Result<void> add_env_file(const std::string& path, json::Array& env) {
  HELIO_TRY(text, read_user_file("--env-file", path));
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    std::string line = trimmed(raw);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("export ")) line = trimmed(std::string_view(line).substr(7));
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::invalid_argument, "{} line {}: expected NAME=VALUE", path, number);
    }
    std::string value = line.substr(equals + 1);
    const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
    if (quoted) value = value.substr(1, value.size() - 2);
    HELIO_CHECK_OK(add_variable(env, line.substr(0, equals), value, false));
  }
  return {};
}

Result<void> apply_env(const SpecFlags& flags, const Environment& environment, json::Object& spec) {
  if (flags.env.empty() && flags.secret_env.empty() && flags.env_files.empty()) return {};
  json::Array& env = array_child(spec, "env");
  for (const std::string& path : flags.env_files) HELIO_CHECK_OK(add_env_file(path, env));
  HELIO_CHECK_OK(add_variables("--env", flags.env, false, environment, env));
  return add_variables("--secret-env", flags.secret_env, true, environment, env);
}

Result<void> apply_requirements(const SpecFlags& flags, json::Object& spec) {
  if (flags.pip.empty() && flags.requirements.empty()) return {};
  json::Array& list = array_child(spec, "requirements");
  for (const std::string& one : flags.pip) list.emplace_back(one);
  if (flags.requirements.empty()) return {};
  HELIO_TRY(text, read_user_file("--requirements", flags.requirements));
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    std::string line = trimmed(raw);
    if (const std::size_t comment = line.find(" #"); comment != std::string::npos) line = trimmed(line.substr(0, comment));
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '-') {
      return fail(ErrorCode::invalid_argument, "{} line {}: '{}' is an option of pip; put it into runtime_env.pip.pip_install_options",
                  flags.requirements, number, line);
    }
    list.emplace_back(line);
  }
  return {};
}

Result<void> apply_runtime_env(const SpecFlags& flags, json::Object& spec) {
  if (!flags.runtime_env.empty()) {
    const bool inline_text = flags.runtime_env.find_first_not_of(" \n\t") != std::string::npos &&
                             flags.runtime_env[flags.runtime_env.find_first_not_of(" \n\t")] == '{';
    auto value = inline_text ? json::parse(flags.runtime_env) : read_document(flags.runtime_env);
    if (!value) return fail(std::move(value).error().during("--runtime-env"));
    if (!value->is_object())
      return fail(ErrorCode::invalid_argument, "--runtime-env must be an object such as {{\"pip\": [\"requests\"]}}");
    spec["runtime_env"] = std::move(*value);
  }
  if (!flags.working_dir.empty()) child(spec, "runtime_env")["working_dir"] = flags.working_dir;
  if (!flags.py_modules.empty()) {
    json::Array& modules = array_child(child(spec, "runtime_env"), "py_modules");
    for (const std::string& module : flags.py_modules) modules.emplace_back(module);
  }
  return {};
}

Result<void> apply_entrypoint(const SpecFlags& flags, const std::vector<std::string>& argv, json::Object& spec) {
  const int forms = (flags.script.empty() ? 0 : 1) + (flags.command.empty() ? 0 : 1) + (argv.empty() ? 0 : 1);
  if (forms > 1) return fail(ErrorCode::invalid_argument, "give one of -- COMMAND, --command LINE and --script FILE");
  if (forms == 0 && !spec.contains("entrypoint")) {
    return fail(ErrorCode::invalid_argument, "nothing to run: put the command after --, such as `helio run -- python train.py`");
  }
  json::Object& entrypoint = child(spec, "entrypoint");
  if (forms == 1) {
    for (const char* other : {"argv", "command", "script"}) entrypoint.erase(other);
  }
  if (!argv.empty()) {
    json::Array words;
    for (const std::string& word : argv) words.emplace_back(word);
    entrypoint["argv"] = std::move(words);
  }
  set_text(entrypoint, "command", flags.command);
  if (!flags.script.empty()) {
    HELIO_TRY(body, read_user_file("--script", flags.script));
    if (body.empty()) return fail(ErrorCode::invalid_argument, "--script {}: the file is empty", flags.script);
    entrypoint["script"] = body;
    const std::string suffix = std::filesystem::path(flags.script).extension().string();
    entrypoint["language"] = !flags.language.empty() ? flags.language : suffix == ".py" ? "python" : "bash";
    if (!spec.contains("name")) spec["name"] = std::filesystem::path(flags.script).stem().string();
  } else {
    set_text(entrypoint, "language", flags.language);
  }
  if (flags.num_cpus || flags.num_gpus || !flags.memory.empty()) {
    json::Object& resources = child(entrypoint, "resources");
    if (flags.num_cpus) resources["num_cpus"] = *flags.num_cpus;
    if (flags.num_gpus) resources["num_gpus"] = *flags.num_gpus;
    set_text(resources, "memory", flags.memory);
  }
  return {};
}

Result<void> apply_policies(const SpecFlags& flags, json::Object& spec) {
  const std::pair<const char*, const std::string*> limits[] = {{"run", &flags.max_run_time},         {"total", &flags.total_time},
                                                               {"pending", &flags.pending_deadline}, {"readiness", &flags.readiness},
                                                               {"stop_grace", &flags.stop_grace},    {"idle", &flags.idle}};
  for (const auto& [name, value] : limits) {
    if (!value->empty()) child(spec, "limits")[name] = *value;
  }
  for (const std::string& text : flags.retries) {
    HELIO_TRY(pair, key_value("--retries", text));
    const auto count = whole_number(pair.second);
    if (!count) return fail(ErrorCode::invalid_argument, "--retries takes CLASS=N such as platform=3, not '{}'", text);
    child(spec, "retries")[pair.first] = *count;
  }
  if (!flags.retain.empty()) {
    HELIO_TRY(pair, key_value("--retain", flags.retain));
    spec["retention"] = json::Object{{"nodes", pair.first}, {"time", pair.second}};
  }
  return {};
}

Result<void> apply_mounts(const SpecFlags& flags, json::Object& spec) {
  for (const std::string& text : flags.mounts) {
    std::vector<std::string> parts = split(text, ':');
    json::Object mount;
    if (parts.size() > 1 && (parts.back() == "ro" || parts.back() == "rw")) {
      mount["read_only"] = parts.back() == "ro";
      parts.pop_back();
    }
    if (parts.size() > 2 || parts[0].empty()) {
      return fail(ErrorCode::invalid_argument, "--mount takes SOURCE[:TARGET][:ro], not '{}'", text);
    }
    HELIO_TRY(source, absolute_path(parts[0]));
    mount["source"] = std::move(source);
    if (parts.size() == 2) mount["target"] = parts[1];
    array_child(spec, "mounts").emplace_back(std::move(mount));
  }
  return {};
}

}  // namespace

Result<json::Value> read_document(const std::string& path) {
  HELIO_TRY(text, read_file(path, kUserFileLimit));
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  auto value = first != std::string::npos && (text[first] == '{' || text[first] == '[') ? json::parse(text) : json::from_yaml(text);
  if (!value) return fail(std::move(value).error().during(path));
  return value;
}

Result<json::Object> build_cluster_spec(const SpecFlags& flags, const Environment& environment) {
  json::Object spec;
  if (!flags.file.empty()) {
    HELIO_TRY(document, read_document(flags.file));
    if (!document.is_object()) return fail(ErrorCode::invalid_argument, "{} must hold one object", flags.file);
    spec = std::move(document.get_object());
  }
  set_text(spec, "name", flags.name);
  set_text(spec, "image", flags.image);
  set_text(spec, "disk_limit", flags.disk_limit);
  set_text(spec, "log_limit", flags.log_limit);
  if (flags.priority) spec["priority"] = *flags.priority;
  if (!flags.head_flavor.empty()) child(spec, "head")["flavor"] = flags.head_flavor;
  if (flags.head_schedulable) child(spec, "head")["schedulable"] = true;
  HELIO_CHECK_OK(apply_workers(flags, spec));
  HELIO_CHECK_OK(apply_env(flags, environment, spec));
  HELIO_CHECK_OK(apply_policies(flags, spec));
  HELIO_CHECK_OK(apply_mounts(flags, spec));
  for (const std::string& text : flags.labels) {
    HELIO_TRY(pair, key_value("--label", text));
    child(spec, "labels")[pair.first] = pair.second;
  }
  return spec;
}

Result<json::Object> build_spec(const SpecFlags& flags, const std::vector<std::string>& argv, const Environment& environment) {
  HELIO_TRY(spec, build_cluster_spec(flags, environment));
  set_text(spec, "completion", flags.completion);
  set_text(spec, "cluster", flags.cluster);
  HELIO_CHECK_OK(apply_requirements(flags, spec));
  HELIO_CHECK_OK(apply_runtime_env(flags, spec));
  HELIO_CHECK_OK(apply_entrypoint(flags, argv, spec));
  return spec;
}

}  // namespace helio::cli
