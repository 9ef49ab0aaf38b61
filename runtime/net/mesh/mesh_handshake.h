// How two processes of a job prove to each other that they hold the job's key, before anything else
// is sent. Neither the key nor anything that depends on it alone goes over the wire, and a peer
// that cannot prove the key is sent nothing:
//
//   initiator: hello   magic, version, generation, both ranks, stripe, nonce, MAC over all of it
//   responder: (after checking it) nonce, MAC over the hello and both nonces
//   initiator: (after checking it) another MAC over the same; frames follow at once
//
// HMAC-SHA256 with a label per message. Both ends then share secret keys for this connection, one
// for each direction, with which they may seal what follows (sealed_records.h). Pure except for
// random numbers: a small, fixed number of bytes in and out.
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

// As getrandom(2): returns the number of bytes, or -1 and errno.
using RandomBytes = ssize_t (*)(void* to, size_t bytes);
ssize_t SystemRandomBytes(void* to, size_t bytes);

struct MeshIdentity {
  std::string job_key;
  uint64_t generation = 0;
  uint32_t rank = 0;
  RandomBytes random_bytes = SystemRandomBytes;
};

// 32 bytes each, unique to one direction of one connection. By HKDF-SHA256 (RFC 5869) from the
// job's key, with the whole handshake, including both nonces, as the salt.
struct MeshSessionKeys {
  std::string from_initiator, from_responder;
};

// HKDF with SHA-256 for 32 bytes of key.
std::string HkdfSha256(std::string_view salt, std::string_view key, std::string_view info);

// The side that connects.
class MeshInitiator {
 public:
  MeshInitiator(const MeshIdentity& identity, uint32_t peer, uint32_t stripe = 0);

  // Not ok: no hello, because the system gave no random numbers.
  const Status& status() const { return status_; }
  // Sent first.
  const std::string& hello() const { return hello_; }
  // How many bytes of the answer are missing; read no more than these.
  size_t Wanted() const;
  // The proof to send once the answer is complete; until then nothing. Not ok: the other side has
  // not proven the key.
  Result<std::string> Receive(std::string_view bytes);
  // Once the answer is complete and correct.
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
  // Returns the bytes to send now, if any. Not ok: close without an answer.
  Result<std::string> Receive(std::string_view bytes);
  // The peer, from a hello with the job's key; proven not to be a replay once Wanted() is 0.
  bool greeted() const { return !nonce_.empty(); }
  uint32_t peer() const { return from_.rank; }
  MeshRoute from() const { return from_; }
  // Once Wanted() is 0 without an error.
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
