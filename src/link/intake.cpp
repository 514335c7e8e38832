#include "link/intake.h"

#include "base/log.h"

#include <algorithm>

namespace helio::link {
namespace {

/// Streams of one connection: a node has some dozens of files; more is a defect of its agent.
constexpr std::size_t kMaxStreams = 10'000;
/// The pause between two tries grows up to this many times the first one.
constexpr int kMostPauses = 8;
/// A log store that refuses does so for every frame of every stream: the daemon's own log is on the same disk.
constexpr Duration kSayEvery = 10s;

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > 200 || name == "." || name == "..") return false;
  for (const char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!ok) return false;
  }
  return true;
}

}  // namespace

void Intake::announce(const model::StreamInfo& info) {
  const auto known = streams_.find(info.id);
  if (known != streams_.end() && known->second.name == info.name) {
    Stream& stream = known->second;
    if (stream.stalled || stream.unopened) return;  // hears where to go on once that is over
    if (!info.ended || stream.size < info.offset.n) {
      // Not whole yet: the agent goes on from the offset and announces the end again behind its last byte.
      tell_offset(info.id, stream);
      return;
    }
    if (auto marked = core_.logs.mark_ended(stream.key); !marked) {
      stall(stream, marked.error());
      return;
    }
    core_.syncer.appended(sink_, stream.key, Ack{info.id, stream.size, true}, 0);
    return;
  }
  if (!valid_name(info.name) || (known == streams_.end() && streams_.size() >= kMaxStreams)) {
    log::warn("node {}: stream '{}' refused", node_.value, info.name.substr(0, 200));
    return;
  }
  Stream& stream = streams_[info.id];
  stream = Stream{};
  stream.key = store::StreamKey{attempt_, node_, info.name};
  stream.name = info.name;
  stream.kind = info.kind;
  open(info.id, stream);
}

void Intake::open(std::int32_t id, Stream& stream) {
  auto size = core_.logs.open(stream.key, stream.kind);
  if (!size) {
    stream.unopened = true;
    stall(stream, size.error());
    return;
  }
  stream.unopened = false;
  stream.size = *size;
  tell_offset(id, stream);
  // What is held may not be durable yet: the agent hears of that too.
  if (stream.size > 0) core_.syncer.appended(sink_, stream.key, Ack{id, stream.size, false}, 0);
}

void Intake::data(const DataFrame& frame) {
  const auto found = streams_.find(frame.stream);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (stream.stalled || stream.unopened) return;
  if (frame.offset > stream.size) {
    if (!stream.rewinding) tell_offset(frame.stream, stream);
    stream.rewinding = true;
    return;
  }
  stream.rewinding = false;
  auto size = core_.logs.append(stream.key, frame.offset, frame.bytes, core_.clock.now());
  if (!size) {
    stall(stream, size.error());
    return;
  }
  pause_ = Duration(0);
  const std::int64_t fresh = *size > stream.size ? *size - stream.size : 0;
  stream.size = *size;
  core_.syncer.appended(sink_, stream.key, Ack{frame.stream, stream.size, false}, static_cast<std::size_t>(fresh));
}

void Intake::retry() {
  waiting_ = false;
  for (auto& [id, stream] : streams_) {
    if (!stream.stalled) continue;
    stream.stalled = false;
    if (stream.unopened) {
      open(id, stream);
    } else {
      tell_offset(id, stream);
      stream.rewinding = true;
    }
  }
}

void Intake::tell_offset(std::int32_t id, const Stream& stream) {
  model::StreamInfo info;
  info.id = id;
  info.name = stream.name;
  info.kind = stream.kind;
  info.offset = Bytes{stream.size};
  send_(stream_frame(info));
}

void Intake::stall(Stream& stream, const Error& error) {
  stream.stalled = true;
  const MonoTime now = core_.clock.mono();
  if (said_.us == 0 || now - said_ >= kSayEvery) {
    const std::string others = unsaid_ == 0 ? std::string() : fmt::format(" ({} more refusals since the last such line)", unsaid_);
    log::warn("node {}: stream '{}' waits: {}{}", node_.value, stream.name, error.text(), others);
    said_ = now;
    unsaid_ = 0;
  } else {
    ++unsaid_;
  }
  if (waiting_) return;
  waiting_ = true;
  const Duration first = core_.options.retry_after;
  pause_ = std::clamp(2 * pause_, first, kMostPauses * first);
  retry_later_(pause_);
}

}  // namespace helio::link
