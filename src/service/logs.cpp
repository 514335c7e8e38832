#include "service/logs.h"

#include "base/pattern.h"
#include "model/cluster.h"
#include "service/scope.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>

namespace helio::service {
namespace {

constexpr std::string_view kDriver = "driver";
constexpr std::size_t kPiece = 256 * 1024;
/// A line longer than this is matched in parts.
constexpr std::size_t kMaxLine = 1024 * 1024;

/// The node that a user's word means in an attempt; nullopt: not one of this attempt.
std::optional<NodeId> node_by_name(const AttemptId& attempt, const std::string& name) {
  if (name == "head") return NodeId(attempt.value + "-h");
  if (name.starts_with(attempt.value + "-")) return NodeId(name);
  std::int32_t index = 0;
  const auto [end, error] = std::from_chars(name.data() + std::min<std::size_t>(1, name.size()), name.data() + name.size(), index);
  if (name.starts_with('w') && error == std::errc() && end == name.data() + name.size() && index > 0) {
    return NodeId(attempt.value + "-" + name);
  }
  return std::nullopt;
}

bool is_node_name(const JobId& job, const std::string& name) {
  return name.starts_with(job.value + "-") || node_by_name(AttemptId("x"), name).has_value();
}

/// What wakes a reader: shared by the store's listener and the logs' watch, which may fire after the reader is gone.
class Bell {
 public:
  void set(std::function<void()> waker) {
    const std::scoped_lock lock(mutex_);
    waker_ = std::move(waker);
    if (waker_ && std::exchange(missed_, false)) waker_();
  }
  /// Rings only when somebody waits: a store with many writers would wake every reader with each commit otherwise.
  void ring() {
    if (!armed_.exchange(false)) return;
    const std::scoped_lock lock(mutex_);
    if (waker_) {
      waker_();
    } else {
      missed_ = true;
    }
  }
  void arm() { armed_ = true; }

 private:
  std::mutex mutex_;
  std::function<void()> waker_;
  bool missed_ = false;
  std::atomic<bool> armed_ = false;
};

/// Lets whole lines through that match.
class LineFilter {
 public:
  explicit LineFilter(Pattern pattern) : pattern_(std::move(pattern)) {}

  void feed(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      if (end == std::string_view::npos) {
        partial_ += bytes;
        if (partial_.size() > kMaxLine) flush(out);
        return;
      }
      if (partial_.empty()) {
        pass(bytes.substr(0, end), out);
      } else {
        partial_ += bytes.substr(0, end);
        flush(out);
      }
      bytes.remove_prefix(end + 1);
    }
  }
  /// The last line may have no end.
  void flush(std::string& out) {
    if (!partial_.empty()) pass(partial_, out);
    partial_.clear();
  }

 private:
  void pass(std::string_view line, std::string& out) const {
    if (pattern_.occurs_in(line)) out.append(line).append("\n");
  }
  Pattern pattern_;
  std::string partial_;
};

class Reader final : public LogReader {
 public:
  Reader(store::Store& store, store::LogStore& logs, JobId job, LogQuery query, std::optional<LineFilter> filter)
      : store_(store),
        logs_(logs),
        job_(std::move(job)),
        query_(std::move(query)),
        filter_(std::move(filter)),
        bell_(std::make_shared<Bell>()),
        limit_(query_.limit < 0 ? std::numeric_limits<std::int64_t>::max() : query_.limit) {}

  ~Reader() override { bell_->set(nullptr); }  // from here on the waker is not called
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Finds the first byte.
  Result<void> start();
  Result<State> next(std::string& out) override;
  void set_waker(std::function<void()> waker) override { bell_->set(std::move(waker)); }

 private:
  struct Snapshot {
    bool job_ended = false;
    std::vector<model::Attempt> attempts;  ///< those that the query selects, by number
  };
  /// Where one attempt's part of the selection stands.
  struct Part {
    store::StreamKey key;
    std::int64_t size = 0;
    bool ended = false;
  };

  Result<Snapshot> snapshot();
  [[nodiscard]] std::optional<Part> part_of(const model::Attempt& attempt, const std::vector<store::StreamMeta>& streams) const;
  [[nodiscard]] Error no_stream() const;
  Result<bool> advance();

  store::Store& store_;
  store::LogStore& logs_;
  JobId job_;
  LogQuery query_;
  std::optional<LineFilter> filter_;
  std::shared_ptr<Bell> bell_;
  std::int64_t limit_;        ///< bytes of the selection still wanted
  std::int64_t skip_ = 0;     ///< bytes of the selection still to pass over
  std::int32_t attempt_ = 0;  ///< number of the attempt being read; 0: none yet
  std::optional<store::StreamKey> stream_;
  std::int64_t position_ = 0;
  std::int64_t stop_at_ = 0;                                  ///< without follow: its size when the reader was opened
  std::vector<std::pair<std::int32_t, std::int64_t>> sizes_;  ///< the same for every attempt
  bool over_ = false;
  std::unique_ptr<store::Store::Subscription> subscription_;
  std::unique_ptr<store::LogStore::Watch> watch_;
  AttemptId watched_;
};

Result<Reader::Snapshot> Reader::snapshot() {
  Snapshot out;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(job, tx.find<model::Job>(job_.value));
    if (!job) return fail(no_job(job_));
    out.job_ended = model::is_terminal(job->state);
    store::ListQuery query;
    query.parent = job_.value;
    HELIO_TRY(attempts, tx.list<model::Attempt>(query));
    for (model::Attempt& attempt : attempts.items) {
      if (query_.attempt == 0 || attempt.number == query_.attempt) out.attempts.push_back(std::move(attempt));
    }
    std::ranges::sort(out.attempts, {}, &model::Attempt::number);
    return {};
  }));
  return out;
}

std::optional<Reader::Part> Reader::part_of(const model::Attempt& attempt, const std::vector<store::StreamMeta>& streams) const {
  std::optional<NodeId> node;
  if (!query_.node.empty()) {
    node = node_by_name(attempt.id, query_.node);
    if (!node) return std::nullopt;
  } else if (!attempt.driver.log_node.empty()) {
    node = NodeId(attempt.driver.log_node);
  }
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(streams,
                                [&](const store::StreamMeta& m) { return m.key.stream == name && (!node || m.key.node == *node); });
  };
  if (!node) {
    // The driver's stream may be here before the row says which node holds it. A follower, who cannot go back, waits for the head's: under
    // Ray before 2.50 any node may hold a stub of that name, with Ray's first line in it.
    if (query_.follow && !model::is_terminal(attempt.state)) {
      node = NodeId(attempt.id.value + "-h");
    } else if (const auto driver = find(kDriver); driver != streams.end()) {
      node = driver->key.node;
    }
  }
  const auto found = find(query_.stream);
  if (found == streams.end()) return std::nullopt;
  return Part{found->key, found->size, found->ended};
}

Error Reader::no_stream() const {
  const std::string where = query_.node.empty() ? "" : fmt::format(" of node {}", query_.node);
  return Error(ErrorCode::not_found, fmt::format("job '{}' has no stream '{}'{}; GET /v1/jobs/{}/streams lists what it has", job_.value,
                                                 query_.stream, where, job_.value))
      .at(query_.stream == kDriver ? "query.node" : "query.stream");
}

Result<void> Reader::start() {
  if (query_.follow) {
    const std::shared_ptr<Bell> bell = bell_;
    subscription_ = store_.subscribe([bell](std::int64_t) { bell->ring(); });
  }
  HELIO_TRY(now, snapshot());
  if (query_.attempt != 0 && now.attempts.empty()) {
    return fail(Error(ErrorCode::not_found, fmt::format("job '{}' has no attempt {}", job_.value, query_.attempt)).at("query.attempt"));
  }
  std::int64_t total = 0;
  std::int64_t before = 0;  ///< bytes of the selection that are older than `since`
  bool older = query_.since.has_value();
  bool any_stream = false;
  for (const model::Attempt& attempt : now.attempts) {
    HELIO_TRY(streams, logs_.list(attempt.id));
    any_stream = any_stream || !streams.empty();
    const auto part = part_of(attempt, streams);
    if (!part) continue;
    sizes_.emplace_back(attempt.number, part->size);
    if (older) {
      HELIO_TRY(offset, logs_.offset_at(part->key, *query_.since));
      before += offset;
      older = offset >= part->size;
    }
    total += part->size;
  }
  // Before a job has any stream, and for who waits, what is asked for may still come; the driver's is always right to ask for.
  const bool named = !query_.node.empty() || query_.stream != kDriver;
  if (sizes_.empty() && named && (now.job_ended || (any_stream && !query_.follow))) return fail(no_stream());
  skip_ = query_.offset < 0 ? std::max<std::int64_t>(0, total + query_.offset) : query_.offset;
  skip_ = std::max(skip_, before);
  return {};
}

/// Goes to the stream of the next attempt that has one. False: there is none (yet).
Result<bool> Reader::advance() {
  HELIO_TRY(now, snapshot());
  for (const model::Attempt& attempt : now.attempts) {
    if (attempt.number <= attempt_) continue;
    if (query_.follow && watched_ != attempt.id) {
      const std::shared_ptr<Bell> bell = bell_;
      watch_ = logs_.watch(attempt.id, [bell] { bell->ring(); });
      watched_ = attempt.id;
    }
    HELIO_TRY(streams, logs_.list(attempt.id));
    const auto part = part_of(attempt, streams);
    if (!part) {
      // A live attempt may still get it; an ended one will not.
      if (query_.follow && !model::is_terminal(attempt.state)) return false;
      continue;
    }
    const auto opened = std::ranges::find(sizes_, attempt.number, &std::pair<std::int32_t, std::int64_t>::first);
    if (!query_.follow && opened == sizes_.end()) continue;  // came after the reader was opened
    attempt_ = attempt.number;
    stream_ = part->key;
    stop_at_ = query_.follow ? std::numeric_limits<std::int64_t>::max() : opened->second;
    position_ = std::min(skip_, part->size);
    skip_ -= position_;
    return true;
  }
  if (!query_.follow || now.job_ended) over_ = true;
  return false;
}

Result<LogReader::State> Reader::next(std::string& out) {
  std::string piece;
  const std::size_t had = out.size();
  while (out.size() == had) {
    if (limit_ == 0) over_ = true;
    if (over_) break;
    bell_->arm();  // before looking: what comes in between rings
    if (!stream_) {
      HELIO_TRY(found, advance());
      if (!found && !over_) return State::pending;
      continue;
    }
    // Asked before the read: what it says has ended gets no more bytes after it.
    bool closed = !query_.follow;
    if (query_.follow) {
      HELIO_TRY(meta, logs_.stat(*stream_));
      closed = meta.ended;
      if (!closed && meta.size <= position_) {
        HELIO_TRY(now, snapshot());
        const auto mine = std::ranges::find(now.attempts, attempt_, &model::Attempt::number);
        closed = mine == now.attempts.end() || model::is_terminal(mine->state);
      }
    }
    const std::int64_t room = std::min({limit_, stop_at_ - position_, static_cast<std::int64_t>(kPiece)});
    if (room > 0) {
      HELIO_TRY(bytes, logs_.read(*stream_, position_, static_cast<std::size_t>(room)));
      piece = std::move(bytes);
    } else {
      piece.clear();
    }
    if (piece.empty()) {
      if (!closed) return State::pending;
      if (filter_) filter_->flush(out);
      stream_.reset();
      continue;
    }
    position_ += static_cast<std::int64_t>(piece.size());
    // An offset beyond what was there when the reader came: passed over as it arrives.
    const auto skipped = std::min(skip_, static_cast<std::int64_t>(piece.size()));
    skip_ -= skipped;
    std::string_view wanted = std::string_view(piece).substr(static_cast<std::size_t>(skipped));
    limit_ -= static_cast<std::int64_t>(wanted.size());
    if (filter_) {
      filter_->feed(wanted, out);
    } else {
      out += wanted;
    }
  }
  if (out.size() > had) return State::data;
  if (filter_) filter_->flush(out);
  return out.size() > had ? State::data : State::end;
}

}  // namespace

Logs::Logs(store::Store& store, store::LogStore& logs) : store_(store), logs_(logs) {}

Result<std::unique_ptr<LogReader>> Logs::open(const JobId& job, const LogQuery& query) {
  std::optional<LineFilter> filter;
  if (!query.grep.empty()) {
    auto pattern = Pattern::compile(query.grep);
    if (!pattern) return fail(std::move(pattern.error()).at("query.grep"));
    filter.emplace(std::move(*pattern));
  }
  if (query.attempt < 0) return fail(Error(ErrorCode::invalid_argument, "expected the number of an attempt, from 1").at("query.attempt"));
  if (query.stream.empty())
    return fail(Error(ErrorCode::invalid_argument, "expected the name of a stream, such as driver").at("query.stream"));
  if (!query.node.empty() && !is_node_name(job, query.node)) {
    return fail(Error(ErrorCode::invalid_argument, fmt::format("unknown node '{}'; expected head, w1, w2, … or a node id", query.node))
                    .at("query.node"));
  }
  auto reader = std::make_unique<Reader>(store_, logs_, job, query, std::move(filter));
  HELIO_CHECK_OK(reader->start());
  return std::unique_ptr<LogReader>(std::move(reader));
}

Result<std::vector<store::StreamMeta>> Logs::streams(const JobId& job) {
  std::vector<AttemptId> attempts;
  HELIO_CHECK_OK(store_.read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(found, tx.find<model::Job>(job.value));
    if (!found) return fail(no_job(job));
    store::ListQuery query;
    query.parent = job.value;
    HELIO_TRY(page, tx.list<model::Attempt>(query));
    std::ranges::sort(page.items, {}, &model::Attempt::number);
    for (const model::Attempt& attempt : page.items) attempts.push_back(attempt.id);
    return {};
  }));
  std::vector<store::StreamMeta> out;
  for (const AttemptId& attempt : attempts) {
    HELIO_TRY(streams, logs_.list(attempt));
    out.insert(out.end(), std::make_move_iterator(streams.begin()), std::make_move_iterator(streams.end()));
  }
  return out;
}

}  // namespace helio::service
