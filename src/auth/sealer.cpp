#include "auth/sealer.h"

#include "auth/secret_file.h"
#include "base/check.h"

#include <sodium.h>

namespace helio::auth {
namespace {

constexpr char kFormat = 1;
constexpr std::size_t kHeader = 1 + crypto_secretbox_NONCEBYTES;

void ready() { HELIO_CHECK(::sodium_init() >= 0, "libsodium has no source of chance"); }

unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

SecretBoxSealer::SecretBoxSealer(const Key& key) : key_(key) { static_assert(sizeof(Key) == crypto_secretbox_KEYBYTES); }
SecretBoxSealer::~SecretBoxSealer() { ::sodium_memzero(key_.data(), key_.size()); }

Result<std::unique_ptr<SecretBoxSealer>> SecretBoxSealer::open_file(const std::string& key_file) {
  ready();
  Key key{};
  HELIO_TRY(content, read_secret_file(key_file));
  if (content) {
    std::size_t length = 0;
    const char* end = nullptr;
    const bool whole = ::sodium_hex2bin(key.data(), key.size(), content->data(), content->size(), "\n", &length, &end) == 0 &&
                       length == key.size() && end == content->data() + content->size();
    ::sodium_memzero(content->data(), content->size());
    if (!whole) {
      return fail(ErrorCode::precondition_failed,
                  "{} is not a sealing key (64 hex digits); restore it from a backup, or remove it and "
                  "the secrets of all jobs with it",
                  key_file);
    }
  } else {
    ::randombytes_buf(key.data(), key.size());
    std::array<char, 2 * sizeof(Key) + 1> hex{};
    ::sodium_bin2hex(hex.data(), hex.size(), key.data(), key.size());
    HELIO_CHECK_OK(write_secret_file(key_file, std::string(hex.data()) + "\n"));
    ::sodium_memzero(hex.data(), hex.size());
  }
  std::unique_ptr<SecretBoxSealer> sealer(new SecretBoxSealer(key));
  ::sodium_memzero(key.data(), key.size());
  return sealer;
}

std::string SecretBoxSealer::seal(std::string_view clear) const {
  std::string out(kHeader + crypto_secretbox_MACBYTES + clear.size(), '\0');
  out[0] = kFormat;
  unsigned char* nonce = bytes(out) + 1;
  ::randombytes_buf(nonce, crypto_secretbox_NONCEBYTES);
  const int rc = ::crypto_secretbox_easy(bytes(out) + kHeader, bytes(clear), clear.size(), nonce, key_.data());
  HELIO_CHECK(rc == 0, "crypto_secretbox_easy failed");
  return out;
}

Result<std::string> SecretBoxSealer::open(std::string_view sealed) const {
  if (sealed.size() < kHeader + crypto_secretbox_MACBYTES || sealed[0] != kFormat) {
    return fail(ErrorCode::internal, "a sealed value is damaged");
  }
  const std::string_view box = sealed.substr(kHeader);
  std::string clear(box.size() - crypto_secretbox_MACBYTES, '\0');
  if (::crypto_secretbox_open_easy(bytes(clear), bytes(box), box.size(), bytes(sealed) + 1, key_.data()) != 0) {
    return fail(ErrorCode::internal, "a sealed value was made with another key or was changed");
  }
  return clear;
}

}  // namespace helio::auth
