#include "api/openapi.h"
#include "api/route.h"
#include "base/log.h"

#include <utility>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

Result<net::Response> version(Context& context, Call&) {
  VersionView out;
  out.version = context.version;
  return reply(out);
}

Result<net::Response> health(Context&, Call&) { return reply(HealthView{}); }

Result<net::Response> openapi(Context& context, Call&) {
  static const std::shared_ptr<const std::string> text = std::make_shared<const std::string>(openapi_text(context.version));
  net::Response out;
  out.headers.emplace_back("Content-Type", "application/json");
  out.shared_body = text;
  return out;
}

Result<net::Response> status(Context& context, Call&) {
  HELIO_TRY(facts, context.facts());
  return reply(facts);
}

/// A reply after which the daemon stops: the end of the reply's life is the moment when it has been sent (or nobody takes it).
class LastReply final : public net::BodySource {
 public:
  LastReply(std::string text, std::function<void()> stop) : text_(std::move(text)), stop_(std::move(stop)) {}
  ~LastReply() override { stop_(); }
  LastReply(const LastReply&) = delete;
  LastReply& operator=(const LastReply&) = delete;
  Piece next() override {
    if (text_.empty()) return {Piece::Kind::end, {}};
    return {Piece::Kind::data, std::exchange(text_, {})};
  }
  void set_waker(std::function<void()>) override {}

 private:
  std::string text_;
  std::function<void()> stop_;
};

Result<net::Response> stop(Context& context, Call& call) {
  log::info("stop asked for by {}", call.caller.principal);
  HELIO_TRY(facts, context.facts());
  net::Response out;
  out.status = 202;
  out.headers.emplace_back("Content-Type", "application/json");
  out.source = std::make_unique<LastReply>(json::dump(json::encode(facts)), context.stop);
  return out;
}

json::Value any_object(json::Schemas&) { return json::Object{{"type", "object"}}; }

}  // namespace

void add_daemon_routes(Routes& routes) {
  routes.push_back({"GET",
                    "/v1/version",
                    "getVersion",
                    "Version of the daemon",
                    std::nullopt,
                    {},
                    nullptr,
                    200,
                    schema_of<VersionView>,
                    "application/json",
                    false,
                    version});
  routes.push_back({"GET",
                    "/v1/healthz",
                    "getHealth",
                    "Does it answer?",
                    std::nullopt,
                    {},
                    nullptr,
                    200,
                    schema_of<HealthView>,
                    "application/json",
                    false,
                    health});
  routes.push_back({"GET",
                    "/v1/openapi.json",
                    "getOpenapi",
                    "This document",
                    std::nullopt,
                    {},
                    nullptr,
                    200,
                    any_object,
                    "application/json",
                    false,
                    openapi});
  routes.push_back({"GET",
                    "/v1/status",
                    "getStatus",
                    "What the daemon says about itself",
                    Access{Verb::see, Kind::settings},
                    {},
                    nullptr,
                    200,
                    schema_of<DaemonView>,
                    "application/json",
                    false,
                    status});
  routes.push_back({"POST",
                    "/v1/daemon/stop",
                    "stopDaemon",
                    "Stop the daemon; running jobs go on",
                    Access{Verb::change, Kind::settings},
                    {},
                    nullptr,
                    202,
                    schema_of<DaemonView>,
                    "application/json",
                    false,
                    stop});
}

}  // namespace helio::api
