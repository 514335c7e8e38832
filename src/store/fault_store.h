#pragma once
// A store that fails or crashes on demand, for simulation and tests: the decision comes from an injected hook, so a seed replays it.

#include "store/store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace helio::store {

/// Thrown through the code under test where a daemon would have been killed. Not a std::exception, so that no handler swallows it.
struct Crash {
  std::string where;
};

enum class Fault {
  none,
  fail,                 ///< the write function runs, nothing of it stays, the caller gets `unavailable`
  crash_before_commit,  ///< the write function runs, nothing of it stays, Crash is thrown
  crash_after_commit,   ///< it is durable, listeners have been called, Crash is thrown
};

/// Passes everything to `inner`, which must outlive it.
class FaultStore final : public Store {
 public:
  /// Asked once per write, with its number from 1.
  using Hook = std::function<Fault(std::int64_t number)>;

  FaultStore(Store& inner, Hook hook) : inner_(inner), hook_(std::move(hook)) {}

  Result<void> write(WriteFn fn) override;
  Result<void> write(const Lease& lease, WriteFn fn) override;
  Result<void> read(ReadFn fn) override { return inner_.read(std::move(fn)); }
  Result<Lease> take_lease(std::string_view holder) override { return inner_.take_lease(holder); }
  [[nodiscard]] std::int64_t revision() const override { return inner_.revision(); }
  [[nodiscard]] std::int64_t changed(std::string_view kind) const override { return inner_.changed(kind); }
  std::unique_ptr<Subscription> subscribe(Listener listener) override { return inner_.subscribe(std::move(listener)); }
  /// How many writes have been asked for.
  [[nodiscard]] std::int64_t writes() const { return writes_; }

 private:
  Result<void> write_with(WriteFn fn, const std::function<Result<void>(WriteFn)>& inner_write);

  Store& inner_;
  Hook hook_;
  std::int64_t writes_ = 0;
};

}  // namespace helio::store
