#include "cli/stream_choice.h"

#include <fnmatch.h>
#include <algorithm>
#include <functional>
#include <set>

namespace helio::cli {
namespace {

constexpr std::size_t kNamed = 5;

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

std::set<std::string> names_that(const std::vector<StreamRow>& rows, const std::function<bool(const std::string&)>& fits) {
  std::set<std::string> out;
  for (const StreamRow& row : rows) {
    if (fits(row.stream)) out.insert(row.stream);
  }
  return out;
}

std::string first_of(const std::set<std::string>& names) {
  std::string out;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown++ == kNamed) return out + ", …";
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

}  // namespace

std::string short_node(std::string_view node_id) {
  const std::string_view last = node_id.substr(node_id.rfind('-') + 1);  // npos + 1 = 0: the whole
  return last == "h" ? "head" : std::string(last);
}

Result<std::string> choose_node(const model::JobSpec& spec, const std::string& given) {
  std::int64_t workers = 0;
  for (const model::WorkerGroup& group : spec.workers) workers += group.count;
  const std::string name = short_node(given);
  if (name == "head") return name;
  std::string all = "head";
  for (std::int64_t i = 1; i <= workers; ++i) {
    const std::string worker = fmt::format("w{}", i);
    if (name == worker) return name;
    if (i <= 3 || i == workers) all += ", " + worker;
    if (i == 4 && workers > 4) all += ", …";
  }
  return fail(ErrorCode::not_found, "no node {}; there {} {}", given, workers == 0 ? "is only" : "are", all);
}

Result<std::vector<std::string>> choose_streams(const std::vector<StreamRow>& there, const std::vector<StreamRow>& elsewhere,
                                                const std::string& where, const std::string& given) {
  const auto same = [&](const std::string& name) { return name == given; };
  const auto fits = [&](const std::string& name) {
    return is_pattern(given) ? ::fnmatch(given.c_str(), name.c_str(), 0) == 0 : name.starts_with(given);
  };
  if (!names_that(there, same).empty()) return std::vector{given};
  const std::set<std::string> found = names_that(there, fits);
  if (found.size() == 1 || (is_pattern(given) && !found.empty())) return std::vector<std::string>(found.begin(), found.end());
  if (!found.empty()) {
    return fail(ErrorCode::conflict, "{} streams of {} begin with '{}' ({}); give more of the name, or a pattern such as '{}*'",
                found.size(), where, given, first_of(found), given);
  }
  const auto other = std::ranges::find_if(elsewhere, [&](const StreamRow& row) { return fits(row.stream); });
  if (other != elsewhere.end()) {
    return fail(ErrorCode::not_found, "{} has no stream '{}', but {} has: add --node {}", where, given, other->node, other->node);
  }
  const std::set<std::string> all = names_that(there, [](const std::string&) { return true; });
  return fail(ErrorCode::not_found, "{} has no stream '{}'; it has {}", where, given, all.empty() ? "none yet" : first_of(all));
}

}  // namespace helio::cli
