#include "api/tie.h"

namespace helio::api {
namespace {

/// Goes with the answer that holds it, and then nobody looks after it any more.
struct Tie {
  net::Cord cord;
  std::unique_ptr<auth::Endings::Watch> watch;
};

}  // namespace

std::shared_ptr<net::Cord> tie(Context& context, const TokenId& token, const SessionId& session) {
  const auto made = std::make_shared<Tie>();
  made->watch = context.endings.watch(token, session, [weak = std::weak_ptr<Tie>(made)] {
    if (const auto held = weak.lock()) held->cord.cut();
  });
  return {made, &made->cord};
}

}  // namespace helio::api
