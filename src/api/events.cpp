#include "api/route.h"

#include <charconv>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

constexpr std::int64_t kAnyRevision = std::numeric_limits<std::int64_t>::max();
constexpr int kEventsAtOnce = 256;

/// What a late wake-up may still touch.
struct Wakeup {
  std::mutex mutex;
  std::function<void()> waker;

  void ring() {
    std::function<void()> call;
    {
      const std::scoped_lock lock(mutex);
      call = waker;
    }
    if (call) call();
  }
};

/// Server-sent events: id is the revision to go on from, event the type, data the document.
class EventStream final : public net::BodySource {
 public:
  EventStream(service::Feed& feed, store::EventQuery query) : feed_(feed), query_(std::move(query)) {
    query_.limit = kEventsAtOnce;
    watch_ = feed_.watch(query_.job, [wakeup = wakeup_] { wakeup->ring(); });
  }

  Piece next() override {
    // What is committed now bounds what the read can miss; without it a filtered reader would look at the same events again and again.
    const std::int64_t until = feed_.revision();
    Piece piece{Piece::Kind::data, {}};
    if (std::exchange(first_, false)) piece.bytes = "retry: 1000\n\n";
    if (query_.since < until) {
      auto events = feed_.events(query_);
      if (!events) {
        // Too old: the client reads its lists again and goes on from here.
        query_.since = until;
        const json::Object data{{"revision", until}, {"reason", events.error().message()}};
        piece.bytes += "id: " + std::to_string(until) + "\nevent: resync\ndata: " + json::dump(data) + "\n\n";
        return piece;
      }
      for (const store::Event& event : *events) {
        query_.since = event.revision;
        piece.bytes += "id: " + std::to_string(event.revision) + "\nevent: " + event.type +
                       "\ndata: " + json::dump(json::encode(view(event))) + "\n\n";
      }
      if (std::cmp_less(events->size(), query_.limit)) query_.since = std::max(query_.since, until);
    }
    if (piece.bytes.empty()) piece.kind = Piece::Kind::pending;
    return piece;
  }
  void set_waker(std::function<void()> waker) override {
    const std::scoped_lock lock(wakeup_->mutex);
    wakeup_->waker = std::move(waker);
  }
  std::string keep_alive() override { return ": still here\n\n"; }

 private:
  service::Feed& feed_;
  store::EventQuery query_;
  std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::unique_ptr<service::Feed::Watch> watch_;
  bool first_ = true;
};

net::Response stream_of(service::Feed& feed, store::EventQuery query) {
  net::Response out;
  out.headers.emplace_back("Content-Type", "text/event-stream");
  out.headers.emplace_back("Cache-Control", "no-store");
  out.source = std::make_unique<EventStream>(feed, std::move(query));
  return out;
}

Result<net::Response> answer(Context& context, Call& call, std::string job) {
  store::EventQuery query;
  query.job = std::move(job);
  HELIO_TRY(watch, call.boolean("watch"));
  // A watch without a start begins now; a browser that reconnects tells the last id it has seen.
  HELIO_TRY(since, call.integer("since", watch ? context.feed.revision() : 0, 0, kAnyRevision));
  HELIO_TRY(limit, call.integer("limit", 1000, 1, 10'000));
  if (const auto last = call.request.header("Last-Event-ID"); last && watch) {
    std::int64_t revision = 0;
    const auto [end, error] = std::from_chars(last->data(), last->data() + last->size(), revision);
    if (error != std::errc{} || end != last->data() + last->size() || revision < 0) {
      return fail(Error(ErrorCode::invalid_argument, "expected a revision").at("header.Last-Event-ID"));
    }
    since = revision;
  }
  query.since = since;
  query.limit = static_cast<int>(limit);
  query.kind = call.text("kind");
  query.id = call.text("id");
  query.within = call.caller.scope.workspaces;
  if (watch) return stream_of(context.feed, std::move(query));
  HELIO_TRY(events, context.feed.events(query));
  json::Array items;
  items.reserve(events.size());
  for (const store::Event& event : events) items.push_back(json::encode(view(event)));
  // The cursor of events is a revision: `since` of the next call.
  const bool full = std::cmp_equal(events.size(), query.limit);
  return reply_list(std::move(items), full ? std::to_string(events.back().revision) : std::string());
}

Result<net::Response> all_events(Context& context, Call& call) { return answer(context, call, call.text("job")); }

Result<net::Response> job_events(Context& context, Call& call) {
  HELIO_TRY(job, context.jobs.get(call.job()));
  return answer(context, call, job.id.value);
}

}  // namespace

void add_event_routes(Routes& routes) {
  std::vector<Parameter> parameters{
      {"since", "events with a greater revision; with watch the default is now", Type::integer},
      {"limit", "at most so many, 1 to 10000 (1000)", Type::integer},
      {"kind", "only of this kind of resource"},
      {"id", "only of the resource with this id"},
      {"watch", "go on as server-sent events; `resync` says that `since` is older than what is kept", Type::boolean},
      {"Last-Event-ID", "like since, as browsers send it", Type::text, Where::header}};
  routes.push_back({"GET", "/v1/jobs/{id}/events", "listJobEvents", "Events of a job", Access{Verb::see, Kind::event}, parameters, nullptr,
                    200, schema_list_of<EventView>, "application/json", false, job_events});
  parameters.push_back({"job", "only what belongs to this job"});
  routes.push_back({"GET", "/v1/events", "listEvents", "Events of everything, in order of revision", Access{Verb::see, Kind::event},
                    parameters, nullptr, 200, schema_list_of<EventView>, "application/json", false, all_events});
}

}  // namespace helio::api
