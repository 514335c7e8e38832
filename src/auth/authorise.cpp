#include "auth/authorise.h"

#include "base/json/json.h"

#include <array>

namespace helio::auth {
namespace {

using enum model::AccessRole;

constexpr std::array kRules{
    Rule{Kind::job, Verb::see, viewer, viewer},
    Rule{Kind::job, Verb::create, developer, developer},
    Rule{Kind::job, Verb::stop, developer, op},
    Rule{Kind::job, Verb::remove, developer, op},
    Rule{Kind::job, Verb::exec, developer, op},  // a shell in its nodes, files of its folders, writes through its dashboard
    Rule{Kind::job, Verb::change, op, op},       // its place in the queue
    Rule{Kind::log, Verb::see, viewer, viewer},
    Rule{Kind::event, Verb::see, viewer, viewer},
    Rule{Kind::attempt, Verb::see, viewer, viewer},
    Rule{Kind::node, Verb::see, viewer, viewer},
    Rule{Kind::package, Verb::see, developer, developer},
    Rule{Kind::package, Verb::create, developer, developer},
    Rule{Kind::flavor, Verb::see, viewer, viewer},
    Rule{Kind::flavor, Verb::create, admin, admin},
    Rule{Kind::flavor, Verb::change, admin, admin},
    Rule{Kind::flavor, Verb::remove, admin, admin},
    Rule{Kind::image, Verb::see, viewer, viewer},
    Rule{Kind::image, Verb::create, admin, admin},  // its Python is run by the daemon itself, outside any node
    Rule{Kind::image, Verb::change, admin, admin},
    Rule{Kind::image, Verb::remove, admin, admin},
    Rule{Kind::host, Verb::see, viewer, viewer},
    Rule{Kind::host, Verb::change, op, op},
    Rule{Kind::token, Verb::see, admin, admin},
    Rule{Kind::token, Verb::create, admin, admin},
    Rule{Kind::token, Verb::remove, admin, admin},
    Rule{Kind::settings, Verb::see, op, op},
    Rule{Kind::settings, Verb::change, admin, admin},
};

const Rule* rule_of(Verb verb, Kind kind) {
  for (const Rule& rule : kRules) {
    if (rule.verb == verb && rule.kind == kind) return &rule;
  }
  return nullptr;
}

}  // namespace

std::span<const Rule> rules() { return kRules; }

std::string_view to_string(Verb verb) {
  static constexpr std::array<std::string_view, 6> kNames{"see", "create", "change", "remove", "stop", "exec"};
  return kNames.at(static_cast<std::size_t>(verb));
}

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, 11> kNames{"job",    "log",   "event", "attempt", "node",    "package",
                                                           "flavor", "image", "host",  "token",   "settings"};
  return kNames.at(static_cast<std::size_t>(kind));
}

bool may(model::AccessRole role, Verb verb, Kind kind, Ownership ownership) {
  const Rule* rule = rule_of(verb, kind);
  return rule != nullptr && role >= (ownership == Ownership::own ? rule->own : rule->others);
}

Result<void> authorise(model::AccessRole role, Verb verb, Kind kind, Ownership ownership) {
  if (may(role, verb, kind, ownership)) return {};
  const Rule* rule = rule_of(verb, kind);
  if (rule == nullptr) return fail(ErrorCode::permission_denied, "nobody may {} a {}", to_string(verb), to_string(kind));
  const model::AccessRole needed = ownership == Ownership::own ? rule->own : rule->others;
  std::string needs(json::enum_name(needed));
  if (rule->own != rule->others) {
    needs = fmt::format("{} for one's own, {} for those of others", json::enum_name(rule->own), json::enum_name(rule->others));
  }
  return fail(Error(ErrorCode::permission_denied, fmt::format("role {} may not {} {}s; that needs role {}", json::enum_name(role),
                                                              to_string(verb), kind == Kind::settings ? "setting" : to_string(kind), needs))
                  .with("needs", std::string(json::enum_name(needed))));
}

}  // namespace helio::auth
