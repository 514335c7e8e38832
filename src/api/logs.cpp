#include "api/log_text.h"
#include "base/log.h"

#include <limits>
#include <memory>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

constexpr std::int64_t kAnySize = std::numeric_limits<std::int64_t>::max();

class LogBody final : public net::BodySource {
 public:
  explicit LogBody(std::unique_ptr<service::LogReader> reader) : reader_(std::move(reader)) {}

  Piece next() override {
    if (ended_) return {Piece::Kind::end, {}};
    Piece piece;
    auto state = reader_->next(piece.bytes);
    if (!state) {
      // The status line is out already, and a word in the text would be taken for a part of the log.
      log::warn("reading a log: {}", state.error().text());
      return {Piece::Kind::failed, {}};
    }
    if (!piece.bytes.empty()) {
      ended_ = *state == service::LogReader::State::end;
      piece.kind = Piece::Kind::data;
    } else {
      piece.kind = *state == service::LogReader::State::end ? Piece::Kind::end : Piece::Kind::pending;
    }
    return piece;
  }
  void set_waker(std::function<void()> waker) override { reader_->set_waker(std::move(waker)); }

 private:
  std::unique_ptr<service::LogReader> reader_;
  bool ended_ = false;
};

Result<service::LogQuery> log_query(Context& context, Call& call) {
  service::LogQuery query;
  HELIO_TRY(attempt, call.integer("attempt", 0, 0, std::numeric_limits<std::int32_t>::max()));
  HELIO_TRY(offset, call.integer("offset", 0, -kAnySize, kAnySize));
  HELIO_TRY(limit, call.integer("limit", -1, -1, kAnySize));
  HELIO_TRY(since, call.time("since", context.clock.now()));
  HELIO_TRY(follow, call.boolean("follow"));
  query.attempt = static_cast<std::int32_t>(attempt);
  query.node = call.text("node");
  query.stream = call.text("stream", "driver");
  query.offset = offset;
  query.limit = limit;
  query.since = since;
  query.grep = call.text("grep");
  query.follow = follow;
  return query;
}

/// Size of the selection, when one stored stream is all of it.
std::optional<std::int64_t> size_of(Context& context, const JobId& job, const service::LogQuery& query) {
  if (query.follow || !query.grep.empty() || query.since) return std::nullopt;
  auto streams = context.logs.streams(job);
  if (!streams) return std::nullopt;
  std::optional<std::int64_t> size;
  for (const store::StreamMeta& meta : *streams) {
    if (meta.key.stream != query.stream) continue;
    if (query.attempt != 0 && meta.key.attempt.value != job.value + "-" + std::to_string(query.attempt)) continue;
    const bool named = query.node.empty() || meta.key.node.value == query.node ||
                       meta.key.node.value == meta.key.attempt.value + "-" + (query.node == "head" ? "h" : query.node);
    if (!named) continue;
    if (size) return std::nullopt;
    size = meta.size;
  }
  return size;
}

Result<net::Response> read(Context& context, Call& call) {
  HELIO_TRY(query, log_query(context, call));
  return log_text(context, call.job(), query);
}

Result<net::Response> streams(Context& context, Call& call) {
  HELIO_TRY(found, context.logs.streams(call.job()));
  json::Array items;
  items.reserve(found.size());
  for (const store::StreamMeta& meta : found) items.push_back(json::encode(view(meta)));
  return reply_list(std::move(items));
}

}  // namespace

Result<net::Response> log_text(Context& context, const JobId& job, const service::LogQuery& query) {
  HELIO_TRY(reader, context.logs.open(job, query));
  net::Response out;
  out.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
  out.headers.emplace_back("X-Content-Type-Options", "nosniff");
  out.headers.emplace_back("Cache-Control", "no-store");
  if (const auto size = size_of(context, job, query)) out.headers.emplace_back("X-Total-Size", std::to_string(*size));
  out.source = std::make_unique<LogBody>(std::move(reader));
  return out;
}

void add_log_routes(Routes& routes) {
  const std::vector<Parameter> parameters{{"attempt", "number of the attempt; 0 (default): all", Type::integer},
                                          {"node", "head, w1, …, or a node id; default: the node that holds the driver's log"},
                                          {"stream", "name of the stream (driver)"},
                                          {"offset", "first byte of the selection; negative: so many bytes before its end", Type::integer},
                                          {"limit", "at most so many bytes; -1 (default): all", Type::integer},
                                          {"since", "only what came after this time, or in this last span of time", Type::time},
                                          {"grep", "only lines that match this RE2 pattern"},
                                          {"follow", "go on until the job has ended", Type::boolean}};
  routes.push_back({"GET", "/v1/jobs/{id}/logs", "readLogs", "Read or follow a log", Access{Verb::see, Kind::log}, parameters, nullptr, 200,
                    nullptr, "text/plain", false, read});
  routes.push_back({"GET",
                    "/v1/jobs/{id}/streams",
                    "listStreams",
                    "Log streams of a job",
                    Access{Verb::see, Kind::log},
                    {},
                    nullptr,
                    200,
                    schema_list_of<StreamView>,
                    "application/json",
                    false,
                    streams});
}

}  // namespace helio::api
