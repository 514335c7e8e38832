#include "cli/ignore.h"

#include <algorithm>

namespace helio::cli {
namespace {

/// Length of the class that starts at pattern[0] == '[', 0 when it is not closed; sets whether `c` belongs to it.
std::size_t match_class(std::string_view pattern, char c, bool& matches) {
  std::size_t i = 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (inverted) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false, ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) return 0;
  matches = found != inverted && c != '/';
  return i + 1;
}

/// Backtracking over at most one open star per kind keeps this polynomial for the patterns that people write; depth is bounded by the
/// number of stars in the pattern.
bool match_here(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      const bool deep = pattern.starts_with("**");
      std::string_view rest = pattern;
      while (rest.starts_with('*')) rest.remove_prefix(1);
      if (deep && rest.starts_with('/') && match_here(rest.substr(1), path)) return true;  // "**/" may be nothing
      for (std::size_t i = 0;; ++i) {
        if (match_here(rest, path.substr(i))) return true;
        if (i >= path.size() || (!deep && path[i] == '/')) return false;
      }
    }
    if (path.empty()) return false;
    std::size_t used = 1;
    bool matches = false;
    if (pattern[0] == '?') {
      matches = path[0] != '/';
    } else if (pattern[0] == '[' && (used = match_class(pattern, path[0], matches)) > 0) {
    } else {
      used = pattern[0] == '\\' && pattern.size() > 1 ? 2 : 1;
      matches = pattern[used - 1] == path[0];
    }
    if (!matches) return false;
    pattern.remove_prefix(used);
    path.remove_prefix(1);
  }
  return path.empty();
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view path) {
  // A hostile pattern would cost exponential time: beyond eight stars nothing but a prefix of literal text is compared.
  if (std::ranges::count(pattern, '*') > 16) return path.starts_with(pattern.substr(0, pattern.find('*')));
  return match_here(pattern, path);
}

void IgnoreRules::add(std::string_view line, std::string_view base) {
  while (line.ends_with('\r') || line.ends_with(' ')) {
    if (line.ends_with("\\ ")) break;
    line.remove_suffix(1);
  }
  if (line.empty() || line[0] == '#') return;
  Rule rule;
  rule.base = base;
  if (line[0] == '!') {
    rule.negated = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    rule.folders_only = true;
    line.remove_suffix(1);
  }
  rule.anchored = line.contains('/');
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return;
  rule.pattern = line;
  rules_.push_back(std::move(rule));
}

void IgnoreRules::add_file(std::string_view text, std::string_view base) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    add(text.substr(0, end), base);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool IgnoreRules::ignored(std::string_view path, bool is_folder) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_only && !is_folder) continue;
    std::string_view below = path;
    if (!rule->base.empty()) {
      if (!below.starts_with(rule->base) || below.size() <= rule->base.size() || below[rule->base.size()] != '/') continue;
      below.remove_prefix(rule->base.size() + 1);
    }
    if (!rule->anchored) {
      const std::size_t slash = below.rfind('/');
      if (slash != std::string_view::npos) below.remove_prefix(slash + 1);
    }
    if (glob_match(rule->pattern, below)) return !rule->negated;
  }
  return false;
}

}  // namespace helio::cli
