#include "base/base64.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace helio {
namespace {

TEST(Error, each_code_has_its_own_name_and_exit_code) {
  std::set<std::string_view> names;
  std::set<int> exits;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_TRUE(names.insert(to_string(code)).second);
    EXPECT_TRUE(exits.insert(cli_exit_code(code)).second);
    EXPECT_EQ(error_code_from_string(to_string(code)), code);
    EXPECT_GE(http_status(code), 400);
    EXPECT_GE(cli_exit_code(code), 64);
    EXPECT_LE(cli_exit_code(code), 79);
  }
  EXPECT_FALSE(error_code_from_string("teapot"));
}

TEST(Error, text_tells_code_path_and_facts) {
  const Error error = Error(ErrorCode::not_found, "no image 'x'").at("$.image").with("image", "x").during("submit");
  EXPECT_EQ(error.text(), "not_found at $.image: submit: no image 'x' [image=x]");
  EXPECT_EQ(system_error(ENOSPC, "write").code(), ErrorCode::storage_full);
  EXPECT_EQ(system_error(ENOENT, "open").code(), ErrorCode::not_found);
}

TEST(Hash, known_answers) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 sha;
  sha.update("a");
  sha.update("bc");
  EXPECT_EQ(sha.finish_hex(), sha256_hex("abc"));
  EXPECT_TRUE(equal_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_constant_time("abc", "ab"));
}

TEST(Base64, gives_back_what_it_took_and_refuses_the_rest) {
  EXPECT_EQ(base64_encode("heliostat"), "aGVsaW9zdGF0");
  EXPECT_EQ(base64_decode("aGVsbG8="), "hello");
  EXPECT_EQ(base64_decode("aGVsbA=="), "hell");
  EXPECT_EQ(base64_decode(""), "");
  EXPECT_EQ(base64_decode("/+8A"), std::string("\xff\xef\0", 3));
  EXPECT_FALSE(base64_decode("abc"));
  EXPECT_FALSE(base64_decode("ab*d"));
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Rng, a_seed_replays_and_ids_differ) {
  SeededRng a(7);
  SeededRng b(7);
  EXPECT_EQ(random_base32(a, 16), random_base32(b, 16));
  SystemRng system;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(random_base32(system, 16)).second);
  EXPECT_EQ(random_hex(system, 32).size(), 64U);
}

}  // namespace
}  // namespace helio
