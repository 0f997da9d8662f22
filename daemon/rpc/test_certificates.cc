#include "daemon/rpc/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

constexpr long kDaySeconds = 24 * 3600;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Certificate = std::unique_ptr<X509, FreeCertificate>;

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Without its signature.
Certificate MakeCertificate(EVP_PKEY* key, const std::string& common_name, long serial, int days) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3 * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * kDaySeconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  return certificate;
}

template <typename Writer>
std::string Pem(const Writer& write) {
  BIO* memory = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(memory), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(memory);
  return pem;
}

std::string KeyPem(EVP_PKEY* key) {
  return Pem([key](BIO* memory) {
    return PEM_write_bio_PrivateKey(memory, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string CertificatePem(X509* certificate) {
  return Pem([certificate](BIO* memory) { return PEM_write_bio_X509(memory, certificate); });
}

}  // namespace

struct TestAuthority::Keys {
  Key key;
  Certificate certificate;
  long next_serial = 2;
};

TestAuthority::TestAuthority(const std::string& name)
    : folder_(absl::StrCat(testing::TempDir(), "/authority_", name, "_", getpid())),
      keys_(std::make_unique<Keys>()) {
  std::filesystem::remove_all(folder_);
  EXPECT_TRUE(MakeDirectories(folder_).ok());
  keys_->key.reset(EVP_EC_gen("P-256"));
  keys_->certificate = MakeCertificate(keys_->key.get(), "Test CA " + name, 1, 2);
  X509* const certificate = keys_->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate, certificate, NID_subject_key_identifier, "hash");
  EXPECT_NE(X509_sign(certificate, keys_->key.get(), EVP_sha256()), 0);
  EXPECT_TRUE(WriteFileAtomically(folder_ + "/ca.crt", CertificatePem(certificate)).ok());
}

TestAuthority::~TestAuthority() { std::filesystem::remove_all(folder_); }

TlsFiles TestAuthority::Issue(const std::string& common_name,
                              const std::vector<std::string>& dns_names, int days) {
  const Key key(EVP_EC_gen("P-256"));
  const long serial = keys_->next_serial++;
  const Certificate certificate = MakeCertificate(key.get(), common_name, serial, days);
  X509* const issuer = keys_->certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  if (!dns_names.empty()) {
    AddExtension(certificate.get(), issuer, NID_subject_alt_name,
                 absl::StrCat("DNS:", absl::StrJoin(dns_names, ",DNS:")));
  }
  EXPECT_NE(X509_sign(certificate.get(), keys_->key.get(), EVP_sha256()), 0);
  const std::string stem = absl::StrCat(folder_, "/", serial);
  const TlsFiles files = {stem + ".crt", stem + ".key", folder_ + "/ca.crt"};
  EXPECT_TRUE(WriteFileAtomically(files.certificate, CertificatePem(certificate.get())).ok());
  EXPECT_TRUE(WriteFileAtomically(files.key, KeyPem(key.get())).ok());
  EXPECT_EQ(chmod(files.key.c_str(), 0600), 0);
  return files;
}

}  // namespace longhaul::daemon
