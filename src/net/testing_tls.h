#pragma once
// For tests: certificates that this test made itself.

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <cstdio>
#include <memory>
#include <string>

namespace helio::net::testing {

/// Writes a key and a certificate for `name` (an address or a host), signed by itself, good for a day.
inline void make_certificate(const std::string& name, const std::string& certificate_file, const std::string& key_file) {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(::EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> cert(::X509_new(), &::X509_free);
  ASSERT_TRUE(key && cert);
  ::X509_set_version(cert.get(), 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(cert.get()), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(cert.get()), -60);
  ::X509_gmtime_adj(::X509_getm_notAfter(cert.get()), 86400);
  ::X509_set_pubkey(cert.get(), key.get());
  X509_NAME* subject = ::X509_get_subject_name(cert.get());
  ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  ::X509_set_issuer_name(cert.get(), subject);
  const bool address = name.find_first_not_of("0123456789.") == std::string::npos;
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, cert.get(), cert.get(), nullptr, nullptr, 0);
  const std::string names = (address ? "IP:" : "DNS:") + name;
  X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, names.c_str());
  ASSERT_NE(extension, nullptr);
  ::X509_add_ext(cert.get(), extension, -1);
  ::X509_EXTENSION_free(extension);
  ASSERT_GT(::X509_sign(cert.get(), key.get(), ::EVP_sha256()), 0);
  // A new file in the old one's place, as people who renew certificates should do.
  const auto write = [](const std::string& file, const auto& put) {
    const std::string fresh = file + ".new";
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> out(std::fopen(fresh.c_str(), "w"), &std::fclose);
    ASSERT_TRUE(out);
    ASSERT_EQ(put(out.get()), 1);
    std::fflush(out.get());
    ASSERT_EQ(std::rename(fresh.c_str(), file.c_str()), 0);
  };
  write(key_file, [&](std::FILE* out) { return ::PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  write(certificate_file, [&](std::FILE* out) { return ::PEM_write_X509(out, cert.get()); });
}

}  // namespace helio::net::testing
