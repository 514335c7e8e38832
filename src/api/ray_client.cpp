// Ray Client (ray://) of a job's cluster: what a client has to be like, and the way to the cluster. The cluster's token is added on that
// way and never leaves it.

#include "api/route.h"
#include "net/http2_header.h"

#include <memory>
#include <mutex>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

/// Of a server that a loaded machine starts: it is one start of Python with Ray.
constexpr Duration kServerStarts = 60s;
/// The wait at the agent is given up somewhat later than ours.
constexpr std::int32_t kWaitSeconds = 75;

/// Asks the head's agent for Ray's client server once nobody listens at its port, and learns when there will be none. Loop thread, but for
/// what the hub calls.
class Starter {
 public:
  Starter(link::Hub& hub, NodeId head) : hub_(hub), head_(std::move(head)) {}
  /// The server stays; nobody waits for its end any more.
  ~Starter() {
    if (forget_) forget_();
  }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  Result<void> refused() {
    if (forget_) return state_->over();
    link::ExecHandlers handlers;
    handlers.on_output = [](const std::string&) {};
    handlers.on_done = [state = state_](const Result<std::int32_t>& result) { state->end(result); };
    link::ExecRequest request;
    request.program = model::program::kRayClientServer;
    request.seconds = kWaitSeconds;
    auto asked = hub_.exec(head_, request, std::move(handlers));
    // After a restart of the daemon its agent is back in a moment: the next try may find it.
    if (!asked) return {};
    forget_ = std::move(*asked);
    return {};
  }

 private:
  struct State {
    void end(const Result<std::int32_t>& result) {
      const std::scoped_lock lock(mutex);
      why = result ? "Ray's client server ended by itself" : result.error().message();
    }
    Result<void> over() {
      const std::scoped_lock lock(mutex);
      if (why.empty()) return {};
      return fail(ErrorCode::precondition_failed, "the cluster cannot be reached by Ray Client: {}", why);
    }
    std::mutex mutex;
    std::string why;
  };

  link::Hub& hub_;
  const NodeId head_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::function<void()> forget_;
};

Result<net::Response> show(Context& context, Call& call) {
  HELIO_TRY(place, context.ray_clients.find(call.job()));
  return reply(RayClientView{place.ray_version, place.python_version, place.python});
}

Result<net::Response> open(Context& context, Call& call) {
  HELIO_TRY(place, context.ray_clients.find(call.job()));
  HELIO_CHECK_OK(
      context.feed.note(call.caller, place.head, "ray_client.open", "Ray Client of " + call.caller.principal, context.clock.now()));
  auto tunnel = std::make_unique<net::Tunnel>();
  tunnel->protocol = "ray-client";
  tunnel->address = place.address;
  tunnel->port = place.port;
  tunnel->what = "Ray's client server of the cluster";
  tunnel->patience = kServerStarts;
  tunnel->refused = [starter = std::make_shared<Starter>(context.hub, place.head)] { return starter->refused(); };
  if (!place.token.empty()) tunnel->filter = std::make_unique<net::Http2HeaderAdder>("authorization", "Bearer " + place.token);
  net::Response out;
  out.tunnel = std::move(tunnel);
  return out;
}

}  // namespace

void add_ray_client_routes(Routes& routes) {
  routes.push_back({"GET",
                    "/v1/jobs/{id}/ray-client",
                    "getRayClient",
                    "What a program has to be like to reach the job's cluster by Ray Client",
                    Access{Verb::exec, Kind::job, true},
                    {},
                    nullptr,
                    200,
                    schema_of<RayClientView>,
                    "application/json",
                    false,
                    show});
  routes.push_back({"GET",
                    "/v1/jobs/{id}/ray-client/tunnel",
                    "openRayClient",
                    "A connection to the cluster's Ray Client server: send `Connection: Upgrade` and `Upgrade: ray-client`; behind the "
                    "answer 101 every byte is Ray's",
                    Access{Verb::exec, Kind::job, true},
                    {},
                    nullptr,
                    101,
                    nullptr,
                    "",
                    false,
                    open});
}

}  // namespace helio::api
