#include "agent/node_dir.h"

#include "model/daemon_file.h"
#include "proc/files.h"

namespace helio::agent {

namespace {

std::string text_in(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string journal_file(const std::string& work_dir) { return work_dir + "/journal.json"; }
std::string final_file(const std::string& work_dir) { return work_dir + "/final.json"; }

}  // namespace

Result<NodeFiles> read_node_files(const std::string& node_dir) {
  NodeFiles files;
  HELIO_TRY(assignment, proc::read_file(node_dir + "/assignment.json"));
  auto parsed = json::parse_as<model::Assignment>(assignment, json::Unknown::ignore);
  if (!parsed) return fail(std::move(parsed).error().during("read assignment.json"));
  files.assignment = std::move(*parsed);
  if (files.assignment.work_dir.empty()) files.assignment.work_dir = node_dir;
  HELIO_TRY(launch, proc::read_file(node_dir + "/launch.json"));
  auto value = json::parse(launch);
  if (!value) return fail(std::move(value).error().during("read launch.json"));
  if (!value->is_object()) return fail(ErrorCode::invalid_argument, "launch.json is not an object");
  files.daemon_file = text_in(value->get_object(), "daemon_file");
  files.daemon_url = text_in(value->get_object(), "daemon_url");
  HELIO_TRY(token, proc::read_file(node_dir + "/agent.token"));
  files.token = trimmed(token);
  return files;
}

Result<std::string> daemon_address(const NodeFiles& files) {
  std::string url = files.daemon_url;
  if (!files.daemon_file.empty()) {
    auto text = proc::read_file(files.daemon_file);
    if (text) {
      HELIO_TRY(file, json::parse_as<model::DaemonFile>(*text, json::Unknown::ignore));
      url = std::move(file.url);
    } else if (url.empty()) {
      return fail(std::move(text).error());
    }
  }
  if (url.empty()) return fail(ErrorCode::not_found, "nobody says where the daemon is");
  while (url.ends_with('/')) url.pop_back();
  if (!url.ends_with("/agent/v1")) url += "/agent/v1";
  if (url.starts_with("http://")) url.replace(0, 4, "ws");
  return url;
}

Result<void> write_journal(const std::string& work_dir, const node::Journal& journal) {
  json::Object object{{"submit_announced", journal.submit_announced},
                      {"submit_refused", journal.submit_refused},
                      {"generation", journal.generation},
                      {"sequence", journal.sequence}};
  if (journal.submitted_at) object["submitted_at"] = json::encode(*journal.submitted_at);
  return proc::write_file(journal_file(work_dir), json::dump(object), 0600, true);
}

node::Journal read_journal(const std::string& work_dir) {
  node::Journal journal;
  const auto text = proc::read_file(journal_file(work_dir));
  if (!text) {
    journal.submit_announced = text.error().code() != ErrorCode::not_found;
    return journal;
  }
  const auto value = json::parse(*text);
  if (!value || !value->is_object()) {
    journal.submit_announced = true;
    return journal;
  }
  const json::Object& object = value->get_object();
  const auto flag = [&](std::string_view key) {
    const json::Value* found = object.if_contains(key);
    return found != nullptr && found->is_bool() && found->get_bool();
  };
  const auto number = [&](std::string_view key) {
    const json::Value* found = object.if_contains(key);
    return found != nullptr && found->is_int64() ? found->get_int64() : 0;
  };
  journal.submit_announced = flag("submit_announced");
  journal.submit_refused = flag("submit_refused");
  journal.generation = number("generation");
  journal.sequence = number("sequence");
  if (const std::string at = text_in(object, "submitted_at"); !at.empty()) journal.submitted_at = parse_time(at);
  return journal;
}

Result<void> write_final(const std::string& work_dir, const model::AgentStatus& status) {
  return proc::write_file(final_file(work_dir), json::dump(json::encode(status)), 0600, true);
}

std::optional<model::AgentStatus> read_final(const std::string& work_dir) {
  const auto text = proc::read_file(final_file(work_dir));
  if (!text) return std::nullopt;
  auto status = json::parse_as<model::AgentStatus>(*text, json::Unknown::ignore);
  if (!status) return std::nullopt;
  return std::move(*status);
}

}  // namespace helio::agent
