#pragma once
// Which files of a folder stay at home: the rules of .gitignore, as far as packing needs them.

#include <string>
#include <string_view>
#include <vector>

namespace helio::cli {

/// `pattern` against `path` ("a/b.txt"): `*` and `?` stop at '/', `**` does not, [a-z] and [!a-z] are classes, `\` quotes.
bool glob_match(std::string_view pattern, std::string_view path);

/// Patterns in the order in which they were added; the last one that matches decides.
class IgnoreRules {
 public:
  /// Adds one line as it stands in a .gitignore in folder `base` ("" = the root, "a/b"). Comments and blank lines add nothing.
  void add(std::string_view line, std::string_view base);
  /// Every line of a file's text.
  void add_file(std::string_view text, std::string_view base);
  [[nodiscard]] bool ignored(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    std::string pattern;
    std::string base;
    bool negated = false;
    bool folders_only = false;
    bool anchored = false;  ///< holds a '/': matches from `base` on, not at any depth
  };
  std::vector<Rule> rules_;
};

}  // namespace helio::cli
