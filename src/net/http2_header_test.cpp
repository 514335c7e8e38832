#include "net/http2_header.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace helio::net {
namespace {

using namespace std::string_literals;

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out.push_back(static_cast<char>(payload.size() >> shift));
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(stream >> shift));
  return out + payload;
}

struct Frame {
  int type;
  int flags;
  int stream;
  std::string payload;
  bool operator==(const Frame&) const = default;
};

std::vector<Frame> parse(std::string bytes) {
  std::vector<Frame> out;
  const auto byte = [&](std::size_t at) { return static_cast<int>(static_cast<unsigned char>(bytes[at])); };
  while (bytes.size() >= 9) {
    const auto size = static_cast<std::size_t>(byte(0) << 16 | byte(1) << 8 | byte(2));
    out.push_back({byte(3), byte(4), byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8), bytes.substr(9, size)});
    bytes.erase(0, 9 + size);
  }
  EXPECT_EQ(bytes, "");
  return out;
}

const std::string kSettings = frame(4, 0, 0, "\0\3\0\0\0\144"s);
const std::string kRequest = frame(1, 0x4, 1, "block");
const std::string kField = "\x10\x0d"s + "authorization" + "\x06" + "Bearer";

TEST(Http2Header, closes_each_header_block_with_a_field_that_no_table_takes_in) {
  Http2HeaderAdder adder("authorization", "Bearer");
  std::string out;
  ASSERT_TRUE(adder.pass(kPreface + kSettings + kRequest + frame(0, 1, 1, "data") + frame(1, 0x5, 3, "another"), out));
  ASSERT_TRUE(out.starts_with(kPreface));
  const std::vector<Frame> expected{{4, 0, 0, "\0\3\0\0\0\144"s}, {1, 0, 1, "block"}, {9, 4, 1, kField}, {0, 1, 1, "data"},
                                    {1, 1, 3, "another"},         {9, 4, 3, kField}};
  EXPECT_EQ(parse(out.substr(kPreface.size())), expected);
}

TEST(Http2Header, a_block_of_several_frames_gets_it_once_at_its_end) {
  Http2HeaderAdder adder("authorization", "Bearer");
  std::string out;
  ASSERT_TRUE(adder.pass(kPreface + frame(1, 0, 5, "a") + frame(9, 0, 5, "b") + frame(9, 4, 5, "") + frame(0, 0, 5, ""), out));
  const std::vector<Frame> expected{{1, 0, 5, "a"}, {9, 0, 5, "b"}, {9, 0, 5, ""}, {9, 4, 5, kField}, {0, 0, 5, ""}};
  EXPECT_EQ(parse(out.substr(kPreface.size())), expected);
}

TEST(Http2Header, bytes_may_come_in_any_pieces) {
  const std::string all = kPreface + kSettings + kRequest + frame(0, 1, 1, std::string(1000, 'd')) + frame(1, 4, 3, std::string(300, 'h'));
  Http2HeaderAdder whole("authorization", "Bearer");
  std::string expected;
  ASSERT_TRUE(whole.pass(all, expected));
  for (const std::size_t piece : {1U, 2U, 7U, 10U, 100U}) {
    Http2HeaderAdder adder("authorization", "Bearer");
    std::string out;
    for (std::size_t at = 0; at < all.size(); at += piece) ASSERT_TRUE(adder.pass(all.substr(at, piece), out));
    EXPECT_EQ(out, expected) << piece;
  }
}

TEST(Http2Header, long_values_have_a_long_length) {
  Http2HeaderAdder adder("x", std::string(127 + 300, 'v'));
  std::string out;
  ASSERT_TRUE(adder.pass(kPreface + kRequest, out));
  EXPECT_EQ(parse(out.substr(kPreface.size())).back().payload, "\x10\x01x\x7f\xac\x02"s + std::string(427, 'v'));
  Http2HeaderAdder edge("x", std::string(127, 'v'));
  out.clear();
  ASSERT_TRUE(edge.pass(kPreface + kRequest, out));
  EXPECT_EQ(parse(out.substr(kPreface.size())).back().payload, "\x10\x01x\x7f\x00"s + std::string(127, 'v'));
}

TEST(Http2Header, what_is_no_http2_goes_nowhere) {
  for (const std::string& start : {"GET / HTTP/1.1\r\n"s, "PRI * HTTP/1.1\r\n"s, "\x16\x03\x01"s}) {
    Http2HeaderAdder adder("authorization", "Bearer");
    std::string out;
    bool passed = true;
    for (const char byte : start) passed = passed && adder.pass(std::string(1, byte), out);
    EXPECT_FALSE(passed) << start;
  }
}

}  // namespace
}  // namespace helio::net
