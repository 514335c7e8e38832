#include "net/tls_client.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <algorithm>
#include <limits>
#include <utility>

namespace helio::net {
namespace {

std::string last_reason() {
  const unsigned long code = ::ERR_get_error();
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  ::ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

bool is_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

int as_int(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max())); }

}  // namespace

struct TlsClient::Impl {
  ~Impl() {
    ::SSL_free(ssl);  // and the buffers that it owns
    ::SSL_CTX_free(context);
  }
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  BIO* in = nullptr;
  BIO* out = nullptr;
};

TlsClient::TlsClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsClient::~TlsClient() = default;

Result<std::unique_ptr<TlsClient>> TlsClient::create(const std::string& host, const std::string& roots) {
  auto impl = std::make_unique<Impl>();
  impl->context = ::SSL_CTX_new(::TLS_client_method());
  HELIO_CHECK(impl->context != nullptr, "memory for TLS");
  ::SSL_CTX_set_min_proto_version(impl->context, TLS1_2_VERSION);
  ::SSL_CTX_set_verify(impl->context, SSL_VERIFY_PEER, nullptr);
  const int trusted = roots.empty() ? ::SSL_CTX_set_default_verify_paths(impl->context)
                                    : ::SSL_CTX_load_verify_locations(impl->context, roots.c_str(), nullptr);
  if (trusted != 1) return fail(ErrorCode::invalid_argument, "{}: no certificates can be read from it: {}", roots, last_reason());
  impl->ssl = ::SSL_new(impl->context);
  HELIO_CHECK(impl->ssl != nullptr, "memory for TLS");
  X509_VERIFY_PARAM* wanted = ::SSL_get0_param(impl->ssl);
  if (is_address(host)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else {
    ::X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0);
    ::SSL_set_tlsext_host_name(impl->ssl, host.c_str());
  }
  impl->in = ::BIO_new(::BIO_s_mem());
  impl->out = ::BIO_new(::BIO_s_mem());
  HELIO_CHECK(impl->in != nullptr && impl->out != nullptr, "memory for TLS");
  ::SSL_set_bio(impl->ssl, impl->in, impl->out);
  ::SSL_set_connect_state(impl->ssl);
  return std::unique_ptr<TlsClient>(new TlsClient(std::move(impl)));
}

void TlsClient::feed(std::string_view bytes) { ::BIO_write(impl_->in, bytes.data(), as_int(bytes.size())); }

std::string TlsClient::take() {
  std::string out(::BIO_ctrl_pending(impl_->out), '\0');
  if (!out.empty()) out.resize(static_cast<std::size_t>(std::max(0, ::BIO_read(impl_->out, out.data(), as_int(out.size())))));
  return out;
}

Result<bool> TlsClient::handshake() {
  const int done = ::SSL_do_handshake(impl_->ssl);
  if (done == 1) return true;
  if (::SSL_get_error(impl_->ssl, done) == SSL_ERROR_WANT_READ) return false;
  const long verdict = ::SSL_get_verify_result(impl_->ssl);
  const std::string reason = last_reason();
  if (verdict == X509_V_OK) return fail(ErrorCode::unavailable, "TLS: {}", reason);
  return fail(ErrorCode::unavailable, "TLS: the server's certificate is not trusted: {}", ::X509_verify_cert_error_string(verdict));
}

Result<void> TlsClient::write(std::string_view text) {
  while (!text.empty()) {
    const int n = ::SSL_write(impl_->ssl, text.data(), as_int(text.size()));
    if (n <= 0) return fail(ErrorCode::unavailable, "TLS: {}", last_reason());
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<TlsClient::Read> TlsClient::read(std::span<char> buffer, std::size_t& size) {
  const int n = ::SSL_read(impl_->ssl, buffer.data(), as_int(buffer.size()));
  size = static_cast<std::size_t>(std::max(0, n));
  if (n > 0) return Read::data;
  switch (::SSL_get_error(impl_->ssl, n)) {
    case SSL_ERROR_WANT_READ:
      return Read::nothing;
    case SSL_ERROR_ZERO_RETURN:
      return Read::end;
    default:
      return fail(ErrorCode::unavailable, "TLS: {}", last_reason());
  }
}

bool TlsClient::has_data() {
  char byte = 0;
  const bool some = ::SSL_peek(impl_->ssl, &byte, 1) > 0;
  ::ERR_clear_error();
  return some;
}

}  // namespace helio::net
