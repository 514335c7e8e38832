// tokens, login: who may call the daemon, and how Ray's own clients do.

#include "base/clock.h"
#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/table.h"
#include "model/access.h"
#include "model/ray_version.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <vector>

namespace helio::cli {
namespace {

/// What a list shows of a token; the API tells no more.
struct TokenRow {
  explicit TokenRow(const json::Value& value) {
    const json::Object* object = value.if_object();
    const auto text = [object](const char* name) {
      const json::Value* found = object == nullptr ? nullptr : object->if_contains(name);
      return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    id = text("id");
    name = text("name");
    principal = text("principal");
    role = text("role");
    created = text("created");
    expires = text("expires");
    const json::Value* names = object == nullptr ? nullptr : object->if_contains("workspaces");
    if (names == nullptr || !names->is_array()) return;
    for (const json::Value& workspace : names->get_array()) {
      if (workspace.is_string()) workspaces.emplace_back(workspace.get_string());
    }
  }
  /// For people.
  [[nodiscard]] std::string scope() const { return workspaces.empty() ? "all" : fmt::format("{}", fmt::join(workspaces, ",")); }

  std::string id, name, principal, role, created, expires;
  std::vector<std::string> workspaces;  ///< empty: all
};

Result<int> list_tokens(const Context& context) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(items, api->list("/v1/tokens"));
  if (context.output() != Output::table) {
    print_document(context, items);
    return 0;
  }
  const Timestamp now = SystemClock::instance().now();
  Table table({"TOKEN", "NAME", "PRINCIPAL", "ROLE", "WORKSPACES", "AGE", "EXPIRES"});
  for (const json::Value& item : items) {
    const TokenRow row(item);
    const auto created = parse_time(row.created);
    const auto expires = parse_time(row.expires);
    std::string end = "never";
    if (expires) end = *expires <= now ? "expired" : "in " + short_age(*expires - now);
    table.row({row.id, row.name, row.principal, row.role, row.scope(), created ? short_age(now - *created) : "", end});
  }
  table.print();
  return 0;
}

struct NewToken {
  std::string name;
  std::string role;
  std::string principal;
  std::string expires;
  std::vector<std::string> workspaces;
};

/// A time as it stands, or the end of a span from now.
Result<Timestamp> end_of(const std::string& text) {
  if (const auto at = parse_time(text)) return *at;
  if (const auto span = parse_duration(text)) return SystemClock::instance().now() + *span;
  return fail(ErrorCode::invalid_argument, "--expires takes a time such as 2027-01-31T12:00:00Z, or a span such as 30d, not '{}'", text);
}

Result<int> create_token(const Context& context, const NewToken& flags) {
  json::Object body{{"name", flags.name}, {"role", flags.role}};
  if (!flags.principal.empty()) body["principal"] = flags.principal;
  if (!flags.workspaces.empty()) {
    json::Array workspaces;
    for (const std::string& workspace : flags.workspaces) workspaces.push_back(json::Value(workspace));
    body["workspaces"] = std::move(workspaces);
  }
  if (!flags.expires.empty()) {
    HELIO_TRY(end, end_of(flags.expires));
    body["expires"] = format_time(end);
  }
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(reply, api->send("POST", "/v1/tokens", body));
  if (context.output() != Output::table) {
    print_document(context, reply);
    return 0;
  }
  const json::Object* object = reply.if_object();
  const json::Value* secret = object == nullptr ? nullptr : object->if_contains("secret");
  const json::Value* token = object == nullptr ? nullptr : object->if_contains("token");
  if (secret == nullptr || !secret->is_string() || token == nullptr) return fail(ErrorCode::internal, "the daemon sent no secret");
  const TokenRow row(*token);
  // The secret alone on stdout, for `$(helio tokens create ...)`.
  fmt::print("{}\n", std::string_view(secret->get_string()));
  std::fflush(stdout);
  fmt::print(stderr, "{}: {} as {}{}, {}. It is not shown again; give it as HELIOSTAT_TOKEN together with HELIOSTAT_URL={}\n", row.id,
             row.principal, row.role, row.workspaces.empty() ? "" : " in " + row.scope(),
             row.expires.empty() ? "without an end" : "until " + row.expires, api->url());
  return 0;
}

/// By id, or by a name that only one has; all are found before one is revoked.
Result<std::vector<std::string>> find_tokens(ApiClient& api, const std::vector<std::string>& whats) {
  HELIO_TRY(items, api.list("/v1/tokens"));
  std::vector<std::string> ids;
  for (const std::string& what : whats) {
    std::vector<std::string> found;
    for (const json::Value& item : items) {
      const TokenRow row(item);
      if (row.id == what) found = {row.id};
      if (row.id == what) break;
      if (row.name == what) found.push_back(row.id);
    }
    if (found.empty()) return fail(ErrorCode::not_found, "no token has the id or name '{}'; `helio tokens` lists them", what);
    if (found.size() > 1)
      return fail(ErrorCode::conflict, "{} tokens have the name '{}'; give an id: {}", found.size(), what, fmt::join(found, ", "));
    ids.push_back(found.front());
  }
  return ids;
}

Result<int> revoke_tokens(const Context& context, const std::vector<std::string>& whats) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(ids, find_tokens(*api, whats));
  for (const std::string& id : ids) {
    HELIO_CHECK_OK(api->remove("/v1/tokens/" + net::url_encode(id)));
    fmt::print("{} is refused from now on\n", id);
  }
  return 0;
}

/// Lines for a shell, after which Ray's own clients talk to this daemon. Old ones know neither RAY_API_SERVER_ADDRESS (before 2.49;
/// RAY_ADDRESS would lead ray.init() astray) nor RAY_AUTH_TOKEN (before 2.52; RAY_JOB_HEADERS is for `ray job` alone).
Result<int> print_environment(const Context& context, const std::string& ray, const std::string& workspace, const std::string& cluster) {
  const auto version = model::parse_ray_version(ray.empty() ? "2.60" : ray);
  if (!version) return fail(ErrorCode::invalid_argument, "--ray takes a version such as 2.30.0, not '{}'", ray);
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_CHECK_OK(api->get("/v1/jobs?limit=1"));  // the token is right
  HELIO_TRY(token, token_of(context));
  if (!cluster.empty()) HELIO_CHECK_OK(api->get("/v1/clusters/" + net::url_encode(cluster)));
  const std::string address = api->url() + "/ray/" + workspace + (cluster.empty() ? "" : "/clusters/" + cluster);
  const bool old = *version < model::RayVersion{2, 49};
  fmt::print("export {}='{}'\n", old ? "RAY_ADDRESS" : "RAY_API_SERVER_ADDRESS", address);
  if (*version < model::kRayTokens) {
    fmt::print("export RAY_JOB_HEADERS='{{\"Authorization\": \"Bearer {}\"}}'\n", token);
  } else {
    fmt::print("export RAY_AUTH_MODE='token'\nexport RAY_AUTH_TOKEN='{}'\n", token);
  }
  std::fflush(stdout);
  if (::isatty(STDOUT_FILENO) != 0) fmt::print(stderr, "# for this shell: eval \"$(helio login --env)\"\n");
  return 0;
}

void add_login_command(CLI::App& app, Context& context) {
  const auto ray = std::make_shared<std::string>();
  const auto workspace = std::make_shared<std::string>("default");
  const auto cluster = std::make_shared<std::string>();
  const auto env = std::make_shared<bool>(false);
  CLI::App* login = app.add_subcommand("login", "let Ray's own clients (ray job submit, …) talk to this daemon");
  login->add_flag("--env", *env, "print the lines that set a shell's environment: eval \"$(helio login --env)\" (what it does anyway)");
  login->add_option("--ray", *ray, "version of the Ray that will be the client (default: a new one)");
  login->add_option("--workspace", *workspace, "default");
  login->add_option("--cluster", *cluster, "a long-lived cluster: jobs go into it instead of getting one of their own");
  login->callback([&context, env, ray, workspace, cluster] {
    context.action = [&context, ray, workspace, cluster] { return print_environment(context, *ray, *workspace, *cluster); };
  });
}

}  // namespace

void add_token_commands(CLI::App& app, Context& context) {
  CLI::App* tokens = app.add_subcommand("tokens", "who may call the daemon: list, create, rm")->alias("token");
  tokens->callback([&context, tokens] {
    if (tokens->get_subcommands().empty()) context.action = [&context] { return list_tokens(context); };
  });
  CLI::App* list = tokens->add_subcommand("list", "list them, without their secrets")->alias("ls");
  list->callback([&context] { context.action = [&context] { return list_tokens(context); }; });

  const auto flags = std::make_shared<NewToken>();
  CLI::App* create = tokens->add_subcommand("create", "make one; its secret is printed once");
  create->add_option("name", flags->name, "what it is for")->required();
  create->add_option("--role", flags->role, "viewer: sees; developer: runs jobs of its own; op: acts on everybody's; admin: all")
      ->required()
      ->check(CLI::IsMember({"viewer", "developer", "op", "admin"}));
  create->add_option("--principal", flags->principal, "who acts, as jobs and events name it (default: the name)");
  create->add_option("--workspace", flags->workspaces, "the only workspace that it knows of (repeatable; default: all)")
      ->allow_extra_args(false);
  create->add_option("--expires", flags->expires, "a time, or a span such as 30d (default: never)");
  create->callback([&context, flags] { context.action = [&context, flags] { return create_token(context, *flags); }; });

  add_login_command(app, context);

  const auto ids = std::make_shared<std::vector<std::string>>();
  CLI::App* remove = tokens->add_subcommand("rm", "revoke");
  remove->add_option("token", *ids, "ids, or names that only one has")->required();
  remove->callback([&context, ids] { context.action = [&context, ids] { return revoke_tokens(context, *ids); }; });
}

}  // namespace helio::cli
