#include "link/frames.h"

#include "base/json/json.h"

namespace helio::link {
namespace {

template <class Int>
Int little_endian(std::string_view bytes) {
  Int value = 0;
  for (std::size_t i = sizeof(Int); i-- > 0;) value = static_cast<Int>((value << 8U) | static_cast<unsigned char>(bytes[i]));
  return value;
}

}  // namespace

Result<DataFrame> parse_data(std::string_view frame) {
  if (frame.size() < kDataHeader || frame[0] != 1) return fail(ErrorCode::invalid_argument, "not a data frame of version 1");
  DataFrame out;
  out.stream = static_cast<std::int32_t>(little_endian<std::uint32_t>(frame.substr(1, 4)));
  out.offset = static_cast<std::int64_t>(little_endian<std::uint64_t>(frame.substr(5, 8)));
  out.bytes = frame.substr(kDataHeader);
  if (out.offset < 0) return fail(ErrorCode::invalid_argument, "offset out of range");
  if (out.bytes.size() > kDataLimit) return fail(ErrorCode::invalid_argument, "data frame of {} bytes", out.bytes.size());
  return out;
}

std::string welcome_frame(std::string_view version, Timestamp now) {
  return json::dump(json::Object{{"type", "welcome"}, {"version", version}, {"now", format_time(now)}});
}

std::string assignment_frame(const model::Assignment& assignment) {
  return json::dump(json::Object{{"type", "assignment"}, {"assignment", json::encode(assignment)}});
}

std::string recorded_frame(std::int64_t sequence) { return json::dump(json::Object{{"type", "recorded"}, {"sequence", sequence}}); }

std::string stream_frame(const model::StreamInfo& stream) {
  return json::dump(json::Object{{"type", "stream"}, {"stream", json::encode(stream)}});
}

std::string ack_frame(const std::vector<Ack>& acks) {
  json::Array streams;
  streams.reserve(acks.size());
  for (const Ack& ack : acks) {
    json::Object stream{{"id", ack.id}, {"offset", ack.offset}};
    if (ack.ended) stream["ended"] = true;
    streams.emplace_back(std::move(stream));
  }
  return json::dump(json::Object{{"type", "ack"}, {"streams", std::move(streams)}});
}

std::string exec_frame(std::string_view id, const ExecRequest& request) {
  json::Object exec{{"id", id}, {"argv", json::encode(request.argv)}, {"seconds", request.seconds}};
  if (!request.program.empty()) exec["program"] = request.program;
  return json::dump(json::Object{{"type", "exec"}, {"exec", std::move(exec)}});
}

std::string exec_cancel_frame(std::string_view id) {
  return json::dump(json::Object{{"type", "exec_cancel"}, {"exec", json::Object{{"id", id}}}});
}

}  // namespace helio::link
