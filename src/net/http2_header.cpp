#include "net/http2_header.h"

#include <algorithm>

namespace helio::net {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndHeaders = 4;
constexpr char kNeverIndexed = 0x10;  ///< a literal field with a literal name that no table takes in

/// RFC 7541, 5.2 without Huffman: the length as an integer of 7 bits and more, then the text.
void put_text(std::string& out, std::string_view text) {
  constexpr std::size_t kShort = 127;
  std::size_t size = text.size();
  if (size < kShort) {
    out.push_back(static_cast<char>(size));
  } else {
    out.push_back(static_cast<char>(kShort));
    for (size -= kShort; size >= 128; size >>= 7U) out.push_back(static_cast<char>((size & 127U) | 128U));
    out.push_back(static_cast<char>(size));
  }
  out += text;
}

}  // namespace

Http2HeaderAdder::Http2HeaderAdder(std::string_view name, std::string_view value) {
  field_.push_back(kNeverIndexed);
  put_text(field_, name);
  put_text(field_, value);
}

bool Http2HeaderAdder::pass(std::string_view bytes, std::string& out) {
  out.reserve(out.size() + bytes.size() + field_.size() + kHead);
  while (!bytes.empty()) {
    if (preface_ < kPreface.size()) {
      const std::size_t n = std::min(bytes.size(), kPreface.size() - preface_);
      if (bytes.substr(0, n) != kPreface.substr(preface_, n)) return false;
      preface_ += n;
      out += bytes.substr(0, n);
      bytes.remove_prefix(n);
      continue;
    }
    if (!in_payload_) {
      head_[head_size_++] = bytes.front();
      bytes.remove_prefix(1);
      if (head_size_ < kHead) continue;
      take_head(out);
    } else {
      const std::size_t n = std::min(bytes.size(), left_);
      out += bytes.substr(0, n);
      bytes.remove_prefix(n);
      left_ -= n;
    }
    if (left_ > 0) continue;
    in_payload_ = false;
    head_size_ = 0;
    if (block_ends_) add_field(out);
    block_ends_ = false;
  }
  return true;
}

void Http2HeaderAdder::take_head(std::string& out) {
  const auto byte = [this](std::size_t at) { return static_cast<std::uint8_t>(head_[at]); };
  left_ = (static_cast<std::size_t>(byte(0)) << 16U) | (static_cast<std::size_t>(byte(1)) << 8U) | byte(2);
  in_payload_ = true;
  const bool of_block = byte(3) == kHeaders || byte(3) == kContinuation;
  block_ends_ = of_block && (byte(4) & kEndHeaders) != 0;
  // It ends with the frame that we add.
  if (block_ends_) head_[4] = static_cast<char>(byte(4) & ~kEndHeaders);
  out.append(head_.data(), kHead);
}

void Http2HeaderAdder::add_field(std::string& out) const {
  const std::size_t size = field_.size();
  out.push_back(static_cast<char>(size >> 16U));
  out.push_back(static_cast<char>(size >> 8U));
  out.push_back(static_cast<char>(size));
  out.push_back(static_cast<char>(kContinuation));
  out.push_back(static_cast<char>(kEndHeaders));
  out.append(head_.data() + 5, 4);  // the same stream
  out += field_;
}

}  // namespace helio::net
