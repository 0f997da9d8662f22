#include "daemon/rpc/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace longhaul::daemon {
namespace {

constexpr uint64_t kPemBytesMax = 1 << 20;
constexpr int kCertificatesMax = 1000;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using AlternativeNames = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;

struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};

absl::Status FileError(absl::string_view what, const std::string& path, absl::string_view problem) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(what, " '", path, "' ", problem));
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(absl::string_view what,
                                                          const std::string& path) {
  const absl::StatusOr<std::string> pem = ReadFile(path, kPemBytesMax);
  if (!pem.ok()) return Annotate(pem.status(), what);
  const Memory memory(BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size())));
  std::vector<Certificate> certificates;
  while (certificates.size() < kCertificatesMax) {
    Certificate certificate(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    certificates.push_back(std::move(certificate));
  }
  ERR_clear_error();
  if (certificates.empty()) return FileError(what, path, "holds no certificate in PEM form");
  return certificates;
}

absl::StatusOr<Key> ReadKey(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return ErrnoStatus(errno, "open key", path);
  if (!S_ISREG(file.st_mode)) return FileError("key", path, "is not a regular file");
  if ((file.st_mode & 07) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("key '", path, "' is open to every user; run: chmod o= '", path, "'"));
  }
  LH_ASSIGN_OR_RETURN(const std::string pem, ReadFile(path, kPemBytesMax));
  const Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // An empty password keeps OpenSSL from asking on the terminal.
  char no_password[] = "";
  Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, no_password));
  if (key == nullptr) return FileError("key", path, "holds no unencrypted private key in PEM form");
  return key;
}

void AddName(const ASN1_STRING* text, std::vector<std::string>& names) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size <= 0) return;
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> names;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int common = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (common >= 0) AddName(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, common)), names);
  const AlternativeNames alternatives(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; alternatives != nullptr && i < sk_GENERAL_NAME_num(alternatives.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    if (name->type == GEN_DNS) AddName(name->d.dNSName, names);
  }
  return names;
}

absl::Status Verify(const TlsFiles& files, const std::vector<Certificate>& chain,
                    const std::vector<Certificate>& roots) {
  const Store store(X509_STORE_new());
  for (const Certificate& root : roots) X509_STORE_add_cert(store.get(), root.get());
  const std::unique_ptr<STACK_OF(X509), FreeStack> between(sk_X509_new_null());
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between.get(), chain[i].get());
  const Verification verification(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(verification.get(), store.get(), chain.front().get(), between.get()) !=
      1) {
    return FileError("certificate", files.certificate, "cannot be verified");
  }
  if (X509_verify_cert(verification.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(verification.get());
  return FileError("certificate", files.certificate,
                   absl::StrCat("is not valid under the CA '", files.ca,
                                "': ", X509_verify_cert_error_string(error)));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckTlsFiles(const TlsFiles& files) {
  LH_ASSIGN_OR_RETURN(const std::vector<Certificate> roots, ReadCertificates("CA", files.ca));
  LH_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                      ReadCertificates("certificate", files.certificate));
  LH_ASSIGN_OR_RETURN(const Key key, ReadKey(files.key));
  X509* const own = chain.front().get();
  if (X509_check_private_key(own, key.get()) != 1) {
    return FileError("key", files.key,
                     absl::StrCat("does not belong to the certificate '", files.certificate, "'"));
  }
  LH_RETURN_IF_ERROR(Verify(files, chain, roots));
  std::vector<std::string> names = NamesOf(own);
  if (names.empty()) {
    return FileError("certificate", files.certificate, "has neither a common name nor a DNS name");
  }
  return names;
}

}  // namespace longhaul::daemon
