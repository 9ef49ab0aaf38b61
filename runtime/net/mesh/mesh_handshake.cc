#include "runtime/net/mesh/mesh_handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "runtime/base/bytes.h"

namespace hvd {
namespace {

constexpr uint32_t kHandshakeMagic = 0x684d7648;  // "HvMh"
constexpr size_t kNonceBytes = 32;
constexpr size_t kMacBytes = 32;
constexpr size_t kFieldBytes = 4 + 4 + 8 + 4 + 4 + 4;
constexpr size_t kHelloBytes = kFieldBytes + kNonceBytes + kMacBytes;
constexpr size_t kAnswerBytes = kNonceBytes + kMacBytes;

constexpr std::string_view kHelloLabel = "hvd mesh hello";
constexpr std::string_view kAnswerLabel = "hvd mesh responder";
constexpr std::string_view kProofLabel = "hvd mesh initiator";
constexpr std::string_view kFromInitiator = "hvd sealed records from initiator";
constexpr std::string_view kFromResponder = "hvd sealed records from responder";

// So many interruptions in a row are no coincidence.
constexpr int kMostInterrupts = 100;

Result<std::string> RandomNonce(RandomBytes random_bytes) {
  std::string nonce(kNonceBytes, '\0');
  size_t have = 0;
  for (int interrupts = 0; have < nonce.size();) {
    errno = 0;
    const ssize_t got = random_bytes(nonce.data() + have, nonce.size() - have);
    if (got > 0) {
      have += static_cast<size_t>(got);
    } else if (errno != EINTR || ++interrupts > kMostInterrupts) {
      return SystemError("getting random numbers for a connection", errno);
    }
  }
  return nonce;
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::string mac(kMacBytes, '\0');
  unsigned int bytes = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  return mac;
}

std::string Mac(const std::string& key, std::string_view label, std::string_view signed_part,
                std::string_view nonce = {}) {
  return HmacSha256(key, std::string(label) + '\0' + std::string(signed_part) + std::string(nonce));
}

MeshSessionKeys KeysOf(const std::string& key, const std::string& hello, std::string_view nonce) {
  const std::string salt = hello + std::string(nonce);
  return {HkdfSha256(salt, key, kFromInitiator), HkdfSha256(salt, key, kFromResponder)};
}

bool SameMac(std::string_view a, const std::string& b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), b.size()) == 0;
}

}  // namespace

ssize_t SystemRandomBytes(void* to, size_t bytes) { return ::getrandom(to, bytes, 0); }

std::string HkdfSha256(std::string_view salt, std::string_view key, std::string_view info) {
  return HmacSha256(HmacSha256(salt, key), std::string(info) + '\1');
}

MeshInitiator::MeshInitiator(const MeshIdentity& identity, uint32_t peer, uint32_t stripe)
    : key_(identity.job_key) {
  ByteWriter writer;
  writer.Put(kHandshakeMagic)
      .Put(kMeshVersion)
      .Put(identity.generation)
      .Put(identity.rank)
      .Put(peer)
      .Put(stripe);
  Result<std::string> nonce = RandomNonce(identity.random_bytes);
  if (!nonce.ok()) {
    status_ = nonce.status();
    return;
  }
  hello_ = writer.Take() + *nonce;
  hello_ += Mac(key_, kHelloLabel, hello_);
}

size_t MeshInitiator::Wanted() const { return kAnswerBytes - answer_.size(); }

Result<std::string> MeshInitiator::Receive(std::string_view bytes) {
  answer_.append(bytes.substr(0, Wanted()));
  if (Wanted() > 0) return std::string();
  std::string_view answer = answer_;
  std::string_view nonce = answer.substr(0, kNonceBytes);
  if (!SameMac(answer.substr(kNonceBytes), Mac(key_, kAnswerLabel, hello_, nonce))) {
    return InvalidArgument("another program answers there, or one of another job");
  }
  return Mac(key_, kProofLabel, hello_, nonce);
}

MeshSessionKeys MeshInitiator::SessionKeys() const {
  return KeysOf(key_, hello_, std::string_view(answer_).substr(0, kNonceBytes));
}

size_t MeshResponder::Wanted() const {
  return hello_.size() < kHelloBytes ? kHelloBytes - hello_.size() : kMacBytes - proof_.size();
}

Result<std::string> MeshResponder::Receive(std::string_view bytes) {
  if (hello_.size() < kHelloBytes) {
    hello_.append(bytes.substr(0, Wanted()));
    return hello_.size() < kHelloBytes ? std::string() : CheckHello();
  }
  proof_.append(bytes.substr(0, Wanted()));
  return Wanted() > 0 ? std::string() : CheckProof();
}

MeshSessionKeys MeshResponder::SessionKeys() const {
  return KeysOf(identity_.job_key, hello_, nonce_);
}

Result<std::string> MeshResponder::CheckHello() {
  std::string_view signed_part = std::string_view(hello_).substr(0, kFieldBytes + kNonceBytes);
  ByteReader reader(signed_part);
  bool ours = reader.Get<uint32_t>() == kHandshakeMagic;
  ours = reader.Get<uint32_t>() == kMeshVersion && ours;
  ours = reader.Get<uint64_t>() == identity_.generation && ours;
  from_.rank = reader.Get<uint32_t>();
  ours = reader.Get<uint32_t>() == identity_.rank && ours;
  from_.stripe = reader.Get<uint32_t>();
  ours = from_.stripe < kMostMeshStripes && ours;
  std::string_view mac = std::string_view(hello_).substr(signed_part.size());
  if (!ours || !SameMac(mac, Mac(identity_.job_key, kHelloLabel, signed_part))) {
    return InvalidArgument("a hello that is none of this job and generation");
  }
  Result<std::string> nonce = RandomNonce(identity_.random_bytes);
  if (!nonce.ok()) return nonce.status();
  nonce_ = std::move(*nonce);
  return nonce_ + Mac(identity_.job_key, kAnswerLabel, hello_, nonce_);
}

Result<std::string> MeshResponder::CheckProof() {
  if (!SameMac(proof_, Mac(identity_.job_key, kProofLabel, hello_, nonce_))) {
    return InvalidArgument("a proof that does not fit");
  }
  return std::string();
}

}  // namespace hvd
