#include "launcher/external/adopt/record_seal.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "launcher/process/jobs/job_id.h"
#include "runtime/base/text/hex_text.h"

namespace hvd {
namespace {

constexpr std::string_view kMark = " seal=";
constexpr size_t kDigits = 64;
static_assert(kSealBytes == kMark.size() + kDigits);

// HMAC-SHA256; the label separates the two uses of a secret.
std::string Mac(const std::string& secret, std::string_view label, std::string_view text) {
  const std::string message = std::string(label) + '\0' + std::string(text);
  std::string mac(kDigits / 2, '\0');
  unsigned int bytes = 0;
  ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(message.data()), message.size(),
         reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  return HexOf(mac);
}

std::string SealOf(const std::string& secret, std::string_view key, std::string_view text) {
  return Mac(secret, "hvd note", std::string(key) + '\0' + std::string(text));
}

}  // namespace

std::string SealRecord(const std::string& secret, std::string_view key, std::string_view text) {
  if (secret.empty()) return std::string(text);
  return std::string(text) + std::string(kMark) + SealOf(secret, key, text);
}

Result<std::string> OpenRecord(const std::string& secret, std::string_view key,
                               std::string_view sealed) {
  const size_t end = sealed.size() < kSealBytes ? 0 : sealed.size() - kSealBytes;
  const std::string_view seal = sealed.substr(end);
  const bool has_seal = seal.size() == kSealBytes && seal.starts_with(kMark);
  if (secret.empty()) {
    if (!has_seal) return std::string(sealed);
    return InvalidArgument(
        "is sealed with a secret that this host does not have (HVD_WORLD_SECRET_FILE)");
  }
  const std::string text(sealed.substr(0, end));
  if (has_seal && SameKey(std::string(seal.substr(kMark.size())), SealOf(secret, key, text)))
    return text;
  return InvalidArgument("is not sealed with the secret of this host (HVD_WORLD_SECRET_FILE)");
}

std::string KeyOfWorld(const std::string& secret, const std::string& nonce) {
  return secret.empty() ? nonce : Mac(secret, "hvd world key", nonce);
}

}  // namespace hvd
