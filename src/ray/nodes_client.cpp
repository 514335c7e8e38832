#include "ray/nodes_client.h"

#include "ray/start_command.h"

namespace helio::ray {

namespace {

constexpr Duration kDeadline = 5s;

const json::Object* object_in(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr ? value->if_object() : nullptr;
}

std::string text_in(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

NodeRow row_of(const json::Object& entry) {
  NodeRow row;
  row.ray_id = text_in(entry, "node_id");
  row.alive = text_in(entry, "state") == "ALIVE";
  row.message = text_in(entry, "state_message");
  const json::Value* head = entry.if_contains("is_head_node");
  row.head = head != nullptr && head->is_bool() && head->get_bool();
  if (const json::Object* labels = object_in(entry, "labels"); labels != nullptr) row.node = text_in(*labels, kNodeLabel);
  if (row.node.empty()) row.node = text_in(entry, "node_name");  // how nodes of Ray before 2.55 are told apart
  return row;
}

}  // namespace

Result<std::unique_ptr<NodesClient>> NodesClient::create(const Endpoint& dashboard) {
  HELIO_TRY(http, open_client(dashboard));
  return std::make_unique<NodesClient>(std::move(http));
}

Result<std::vector<NodeRow>> parse_nodes(std::string_view body) {
  HELIO_TRY(value, json::parse(body));
  const json::Object* root = value.if_object();
  const json::Object* data = root != nullptr ? object_in(*root, "data") : nullptr;
  const json::Object* result = data != nullptr ? object_in(*data, "result") : nullptr;
  const json::Value* list = result != nullptr ? result->if_contains("result") : nullptr;
  if (list == nullptr || !list->is_array()) return fail(ErrorCode::unavailable, "the cluster's node table cannot be read");
  std::vector<NodeRow> rows;
  rows.reserve(list->get_array().size());
  for (const json::Value& entry : list->get_array()) {
    if (const json::Object* object = entry.if_object(); object != nullptr) rows.push_back(row_of(*object));
  }
  return rows;
}

Result<std::vector<NodeRow>> NodesClient::rows() {
  HELIO_TRY(response, http_->send({.target = "/api/v0/nodes?limit=10000", .deadline = kDeadline}));
  if (response.status != 200) return fail(ErrorCode::unavailable, "the node table answers {}", response.status);
  return parse_nodes(response.body);
}

Result<std::unique_ptr<AgentClient>> AgentClient::create(const Endpoint& agent) {
  HELIO_TRY(http, open_client(agent));
  return std::make_unique<AgentClient>(std::move(http));
}

bool AgentClient::healthy() {
  const auto response = http_->send({.target = "/api/local_raylet_healthz", .deadline = kDeadline});
  return response && response->status == 200;
}

}  // namespace helio::ray
