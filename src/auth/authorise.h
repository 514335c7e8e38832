#pragma once
// Who may do what: one table of (kind, verb) -> least role, for one's own things and for others'.

#include "base/error.h"
#include "model/access.h"

#include <span>
#include <string_view>

namespace helio::auth {

enum class Verb { see, create, change, remove, stop, exec };
enum class Kind { job, log, event, attempt, node, package, flavor, image, host, token, settings };

enum class Ownership { own, others };

struct Rule {
  Kind kind;
  Verb verb;
  model::AccessRole own;     ///< least role for what the caller owns (and for creating)
  model::AccessRole others;  ///< least role for what somebody else owns
};

/// The whole table. A pair that is not in it does not exist and is refused to everybody.
std::span<const Rule> rules();
std::string_view to_string(Verb verb);
std::string_view to_string(Kind kind);

[[nodiscard]] bool may(model::AccessRole role, Verb verb, Kind kind, Ownership ownership);
/// Error: permission_denied that names the role that would do.
Result<void> authorise(model::AccessRole role, Verb verb, Kind kind, Ownership ownership = Ownership::others);

}  // namespace helio::auth
