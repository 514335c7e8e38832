#pragma once
// Use cases of flavors, images, hosts, nodes, events.

#include "base/clock.h"
#include "model/home.h"
#include "model/settings.h"
#include "service/caller.h"
#include "store/store.h"

#include <functional>
#include <string>
#include <vector>

namespace helio::service {

/// Runs `<prefix>/bin/python -c …` and returns what it printed; wired to proc/ by the daemon, a fake in tests. 30 s limit.
using PythonProbe = std::function<Result<std::string>(const std::string& python, const std::string& code)>;

class Images {
 public:
  Images(store::Store& store, const Clock& clock, PythonProbe probe);
  /// Checks the prefix (absolute, bin/python runs, Ray >= 2.6 importable) and records its versions. Again with the same name: replaced
  /// when the prefix is the same, else already_exists.
  /// Ray before 2.52 has no tokens: refused (precondition_failed) unless image.allow_no_token.
  Result<model::Image> add(const Caller& caller, model::Image image);
  Result<std::vector<model::Image>> list();
  Result<model::Image> get(const std::string& name);
  /// Error: precondition_failed while a job that has not ended uses it.
  Result<void> remove(const Caller& caller, const std::string& name);

 private:
  store::Store& store_;
  const Clock& clock_;
  PythonProbe probe_;
};

class Flavors {
 public:
  Flavors(store::Store& store, const Clock& clock, const model::Settings& settings) : store_(store), clock_(clock), settings_(settings) {}
  /// Makes or changes it; jobs that wait keep their own object store sizes. Shared memory that is not given is 35 % of the memory.
  Result<model::Flavor> put(const Caller& caller, model::Flavor flavor);
  Result<std::vector<model::Flavor>> list();
  /// Error: precondition_failed while a job that has not ended uses it, and for those that jobs get which name none.
  Result<void> remove(const Caller& caller, const std::string& name);

 private:
  store::Store& store_;
  const Clock& clock_;
  const model::Settings& settings_;
};

/// Stored when the daemon starts; a flavor that exists is left alone.
Result<void> ensure_default_flavors(store::Store& store, const Clock& clock, const model::Settings& settings);

}  // namespace helio::service
