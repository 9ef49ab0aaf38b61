// How two processes of a job prove to each other that they hold the job's key, before anything else
// is said. Neither the key nor anything that depends on it alone goes over the wire, and whoever
// cannot prove the key is told nothing:
//
//   initiator: hello   magic, version, generation, both ranks, stripe, nonce, MAC over all of it
//   responder: (after checking it) nonce, MAC over the hello and both nonces
//   initiator: (after checking it) another MAC over the same; frames follow at once
//
// HMAC-SHA256 with a label per message. Both ends then know keys for this connection that nobody
// else does, one for each direction; who has use for them seals what follows (sealed_records.h).
// Pure but for the random numbers: bytes go in and out, a few and a fixed number.
#ifndef HVD_RUNTIME_NET_MESH_MESH_HANDSHAKE_H_
#define HVD_RUNTIME_NET_MESH_MESH_HANDSHAKE_H_

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr uint32_t kMeshVersion = 4;
// The most connections of one direction of a pair.
inline constexpr uint32_t kMostMeshStripes = 16;

// One direction of a pair, and which of its connections.
struct MeshRoute {
  uint32_t rank = 0;  // of the other side
  uint32_t stripe = 0;
  auto operator<=>(const MeshRoute&) const = default;
};

// As getrandom(2): how many bytes were had, or -1 and errno.
using RandomBytes = ssize_t (*)(void* to, size_t bytes);
ssize_t SystemRandomBytes(void* to, size_t bytes);

struct MeshIdentity {
  std::string job_key;
  uint64_t generation = 0;
  uint32_t rank = 0;
  RandomBytes random_bytes = SystemRandomBytes;
};

// 32 bytes each, of one connection: no other one, and neither direction, has them as well. By
// HKDF-SHA256 (RFC 5869) from the job's key, with all that was said in the handshake, both nonces
// among it, as the salt.
struct MeshSessionKeys {
  std::string from_initiator, from_responder;
};

// HKDF with SHA-256 for 32 bytes of key.
std::string HkdfSha256(std::string_view salt, std::string_view key, std::string_view info);

// The side that connects.
class MeshInitiator {
 public:
  MeshInitiator(const MeshIdentity& identity, uint32_t peer, uint32_t stripe = 0);

  // Not ok: there is no hello, because the system has no random numbers for it.
  const Status& status() const { return status_; }
  // Sent first.
  const std::string& hello() const { return hello_; }
  // How many bytes of the answer are missing; no more than these may be read.
  size_t Wanted() const;
  // The proof to be sent, once the answer is whole; until then nothing. Not ok: the other side is
  // none of ours.
  Result<std::string> Receive(std::string_view bytes);
  // Once the answer is whole and right.
  MeshSessionKeys SessionKeys() const;

 private:
  const std::string key_;
  Status status_;
  std::string hello_;
  std::string answer_;
};

// The side that is connected to.
class MeshResponder {
 public:
  explicit MeshResponder(const MeshIdentity& identity) : identity_(identity) {}

  size_t Wanted() const;
  // Returns the bytes to be sent now, perhaps none. Not ok: close without a word.
  Result<std::string> Receive(std::string_view bytes);
  // The peer: named in a hello with the job's key, and proven to be no old one once Wanted() is 0.
  bool greeted() const { return !nonce_.empty(); }
  uint32_t peer() const { return from_.rank; }
  MeshRoute from() const { return from_; }
  // Once Wanted() is 0 and nothing was wrong.
  MeshSessionKeys SessionKeys() const;

 private:
  Result<std::string> CheckHello();
  Result<std::string> CheckProof();

  const MeshIdentity identity_;
  std::string hello_, nonce_, proof_;
  MeshRoute from_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_HANDSHAKE_H_
