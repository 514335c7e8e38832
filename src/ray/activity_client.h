#pragma once
// Whether anything goes on in a cluster, over HTTP. Blocking; one thread at a time.

#include "base/error.h"
#include "ray/jobs_client.h"

#include <memory>
#include <optional>
#include <string_view>

namespace helio::ray {

struct Activity {
  bool busy = false;                  ///< a submitted job, a driver (a Ray Client's too) or an actor is there
  std::optional<Timestamp> last_end;  ///< when the newest job that is over ended
};

class ActivityClient {
 public:
  static Result<std::unique_ptr<ActivityClient>> create(const Endpoint& dashboard);
  explicit ActivityClient(std::unique_ptr<net::HttpClient> http) : http_(std::move(http)) {}
  /// Two questions at most. Error: unavailable when the dashboard does not answer as it should.
  Result<Activity> look();
  void cancel() { http_->cancel(); }

 private:
  std::unique_ptr<net::HttpClient> http_;
};

/// Reads GET /api/jobs/: submitted jobs and drivers, living and past.
Result<Activity> parse_jobs_activity(std::string_view body);
/// Reads GET /api/v0/actors: whether there is one. The question leaves out those that are dead.
Result<bool> parse_any_actor(std::string_view body);

}  // namespace helio::ray
