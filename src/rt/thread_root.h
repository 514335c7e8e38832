#pragma once
// What every thread of rt/ has at its root.

#include "base/check.h"

#include <pthread.h>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace helio::rt {

/// Name in ps and debuggers; the kernel keeps 15 characters.
inline void name_thread(const std::string& name) { ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str()); }

/// Runs `fn`. An exception that reaches a root is a defect: logged, counted, fatal in debug builds. Lack of memory is always fatal.
template <class Fn>
void guarded(Fn&& fn) {
  try {
    std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    HELIO_CHECK(false, "out of memory");
  } catch (const std::exception& e) {
    HELIO_DCHECK(false, e.what());
    HELIO_SOFT_CHECK(false, std::string("exception at the root of a thread: ") + e.what());
  }
}

}  // namespace helio::rt
