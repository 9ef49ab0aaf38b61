// MeshPeer: one stripe of a peer of a mesh, with its two connections and the messages that go over
// them. Every use needs the mesh's lock.
#ifndef HVD_RUNTIME_NET_MESH_MESH_PEER_H_
#define HVD_RUNTIME_NET_MESH_MESH_PEER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_frame.h"

namespace hvd {

// One connection, and the bytes that go over it in both directions.
struct MeshConnection {
  MeshConnection(uint64_t& numbered, MeshInbox& inbox) : outbox(numbered), reader(inbox) {}

  UniqueFd socket;
  MeshOutbox outbox;
  MeshReader reader;
  uint32_t events = 0;  // watched by the epoll
  bool watched = true;  // by the epoll
};

// The facts that all peers of a process share.
struct MeshPeerOptions {
  uint32_t self = 0;           // the rank of the process
  size_t most_kept = 0;        // as in MeshInbox
  bool proves_routes = false;  // as in MeshOptions
};

struct MeshPeer {
  enum class Dial : uint8_t { kNone, kInFlight, kDone };

  MeshPeer(const MeshPeerOptions& options, MeshRoute to, MeshAnyReceives& any)
      : rank(to.rank),
        stripe(to.stripe),
        answers_over_in(to.stripe == 0 && options.self > to.rank && !options.proves_routes),
        inbox(to.rank, options.most_kept, out.outbox, any),
        out(numbered, inbox),
        in(numbered, inbox) {}
  bool LeftInPeace() const { return inbox.bye() && inbox.bye_text().empty(); }
  // "rank 3 at 10.0.0.7:4242".
  std::string Name() const {
    return Format("rank {}{}", rank, address.empty() ? "" : " at " + address);
  }
  MeshRoute route() const { return {rank, stripe}; }

  MeshConnection& Other(const MeshConnection& than) { return &than == &out ? in : out; }

  const uint32_t rank, stripe;
  const bool answers_over_in;  // with small messages
  uint64_t numbered = 0;       // frames to it so far
  MeshInbox inbox;
  MeshConnection out, in;      // dialled by this process; by the peer
  MeshConnection* last = &in;  // over which something came last
  std::string address;         // the last known one
  Dial dial = Dial::kNone;
  bool in_ended = false;  // EndOfIncoming was called
  bool queued = false;    // MeshPeers::Begin has something to move
  bool owes = false;      // an acknowledgement over `in`
  uint64_t moved = 0;     // bytes, in both directions
  Status lost;            // not ok: no more traffic
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_PEER_H_
