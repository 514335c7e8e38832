#pragma once
// Internal to link/: frames of api/agent-protocol.md as structs and text.

#include "base/error.h"
#include "link/hub.h"
#include "link/syncer.h"
#include "model/agent_protocol.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace helio::link {

inline constexpr std::size_t kDataHeader = 13;
inline constexpr std::size_t kDataLimit = 256U << 10U;

struct DataFrame {
  std::int32_t stream = 0;
  std::int64_t offset = 0;
  std::string_view bytes;
};

/// `u8 1 · u32 stream id · u64 offset · bytes`, little endian. Error: invalid_argument.
Result<DataFrame> parse_data(std::string_view frame);

std::string welcome_frame(std::string_view version, Timestamp now);
std::string assignment_frame(const model::Assignment& assignment);
std::string recorded_frame(std::int64_t sequence);
std::string stream_frame(const model::StreamInfo& stream);
std::string ack_frame(const std::vector<Ack>& acks);
std::string exec_frame(std::string_view id, const ExecRequest& request);
std::string exec_cancel_frame(std::string_view id);

}  // namespace helio::link
