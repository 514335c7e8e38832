#pragma once
// What was opened with a token, or from a browser that showed one, ends when that does: by its time, by a logout, by a revocation.

#include "auth/sessions.h"
#include "auth/tokens.h"
#include "base/clock.h"
#include "base/executor.h"
#include "store/store.h"

#include <functional>
#include <memory>

namespace helio::auth {

/// Any thread. While nothing is watched it costs a commit one look at a number.
class Endings {
 public:
  /// `executor` asks whether tokens are still good, which may read the store. All must outlive it, and the executor must have stopped, or
  /// have nothing left to do, when the others go.
  Endings(store::Store& store, const Clock& clock, Executor& executor, Tokens& tokens, Sessions& sessions);
  ~Endings();
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  class Watch {
   public:
    virtual ~Watch() = default;
  };
  /// Calls `ended` once, on the executor, when the token has ended, or `session` where it is not empty: at its time, or after the commit
  /// that took it away. One that ended before this call is told too, so who was let in before an end and comes here after it is not missed.
  /// Does not block. A call that has begun may outlast the watch.
  std::unique_ptr<Watch> watch(const TokenId& token, const SessionId& session, std::function<void()> ended);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<store::Store::Subscription> subscription_;
};

}  // namespace helio::auth
