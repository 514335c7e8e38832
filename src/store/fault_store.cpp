#include "store/fault_store.h"

#include <utility>

namespace helio::store {

Result<void> FaultStore::write(WriteFn fn) {
  return write_with(std::move(fn), [this](WriteFn inner) { return inner_.write(std::move(inner)); });
}

Result<void> FaultStore::write(const Lease& lease, WriteFn fn) {
  return write_with(std::move(fn), [this, lease](WriteFn inner) { return inner_.write(lease, std::move(inner)); });
}

Result<void> FaultStore::write_with(WriteFn fn, const std::function<Result<void>(WriteFn)>& inner_write) {
  const std::int64_t number = ++writes_;
  const Fault fault = hook_ ? hook_(number) : Fault::none;
  if (fault == Fault::none) return inner_write(std::move(fn));
  auto result = inner_write([&](WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(fn(tx));
    if (fault == Fault::fail) return helio::fail(ErrorCode::unavailable, "injected failure of write {}", number);
    if (fault == Fault::crash_before_commit) throw Crash{fmt::format("before commit of write {}", number)};
    return {};
  });
  if (result && fault == Fault::crash_after_commit) throw Crash{fmt::format("after commit of write {}", number)};
  return result;
}

}  // namespace helio::store
