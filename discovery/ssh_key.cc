#include "discovery/ssh_key.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

namespace hvd {
namespace {

constexpr size_t kMaxType = 64;
constexpr size_t kBlockBytes = 64;  // of SHA-1
constexpr size_t kSha1Bytes = 20;
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool IsTypeCharacter(char c) { return c > ' ' && c < 0x7F && c != ','; }

// A hash function, looked up once: libcrypto's HMAC() looks it up at each call, and known_hosts may
// have thousands of hashed names to be compared with each of hundreds of hosts.
class Digest {
 public:
  explicit Digest(const char* name)
      : function_(::EVP_MD_fetch(nullptr, name, nullptr)), context_(::EVP_MD_CTX_new()) {}
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest() {
    ::EVP_MD_CTX_free(context_);
    ::EVP_MD_free(function_);
  }

  std::string Of(std::initializer_list<std::string_view> parts) {
    std::string digest(EVP_MAX_MD_SIZE, '\0');
    unsigned int size = 0;
    bool ok = ::EVP_DigestInit_ex(context_, function_, nullptr) == 1;
    for (std::string_view part : parts)
      ok = ok && ::EVP_DigestUpdate(context_, part.data(), part.size()) == 1;
    auto* bytes = reinterpret_cast<unsigned char*>(digest.data());
    ok = ok && ::EVP_DigestFinal_ex(context_, bytes, &size) == 1;
    digest.resize(ok ? size : 0);  // "": this libcrypto has no such function, and nothing may match
    return digest;
  }

 private:
  EVP_MD* function_;
  EVP_MD_CTX* context_;
};

Digest& Sha1() {
  thread_local Digest digest("SHA1");
  return digest;
}

Digest& Sha256() {
  thread_local Digest digest("SHA256");
  return digest;
}

// The value of a character in the alphabet, or 64.
constexpr std::array<uint8_t, 256> MakeSextets() {
  std::array<uint8_t, 256> sextets{};
  sextets.fill(64);
  for (uint8_t i = 0; i < kAlphabet.size(); ++i) sextets[static_cast<uint8_t>(kAlphabet[i])] = i;
  return sextets;
}

constexpr std::array<uint8_t, 256> kSextets = MakeSextets();

}  // namespace

std::string KeyTypeOf(std::string_view key) {
  if (key.size() <= 4) return "";
  size_t length = 0;
  for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(key[i]);
  if (length == 0 || length > kMaxType || length >= key.size() - 4) return "";
  std::string_view type = key.substr(4, length);
  return std::all_of(type.begin(), type.end(), IsTypeCharacter) ? std::string(type) : "";
}

std::string Fingerprint(std::string_view key) {
  std::string text = EncodeBase64(Sha256().Of({key}));
  return "SHA256:" + text.substr(0, text.find('='));
}

std::string HmacSha1(std::string_view key, std::string_view text) {
  std::string inner(kBlockBytes, '\0');
  if (key.size() > kBlockBytes) {
    inner.replace(0, kSha1Bytes, Sha1().Of({key}));
  } else {
    inner.replace(0, key.size(), key);
  }
  std::string outer = inner;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  return Sha1().Of({outer, Sha1().Of({inner, text})});
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    bool padded = i >= text.size() - padding;
    uint8_t sextet = padded ? 0 : kSextets[static_cast<uint8_t>(text[i])];
    if (sextet > 63) return std::nullopt;
    group = group << 6 | sextet;
    if (i % 4 != 3) continue;
    for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(group >> shift);
    group = 0;
  }
  // The bits left over by padding are not bytes.
  for (; padding > 0; --padding) {
    if (bytes.back() != '\0') return std::nullopt;
    bytes.pop_back();
  }
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(3, bytes.size()))) {
    size_t taken = std::min<size_t>(3, bytes.size());
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < taken ? static_cast<uint8_t>(bytes[i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= taken ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace hvd
