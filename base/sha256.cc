#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "base/check.h"

namespace longhaul {

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) {
    LH_CHECK(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  }
  ~State() { EVP_MD_CTX_free(context); }
  EVP_MD_CTX* context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(absl::string_view bytes) {
  LH_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::FinishHex() {
  char digest[32];
  LH_CHECK(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest), nullptr) ==
           1);
  return absl::BytesToHexString(absl::string_view(digest, sizeof(digest)));
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.FinishHex();
}

bool IsSha256Hex(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace longhaul
