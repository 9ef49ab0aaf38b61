// MeshPeerTable: the peers of a mesh and their stripes, how much they moved and which are lost. No
// thread and no clock: every call needs the mesh's lock.
#ifndef HVD_RUNTIME_NET_MESH_MESH_PEER_TABLE_H_
#define HVD_RUNTIME_NET_MESH_MESH_PEER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_peer.h"
#include "runtime/net/mesh/mesh_signs.h"

namespace hvd {

class MeshPeerTable {
 public:
  explicit MeshPeerTable(const MeshPeerOptions& options) : options_(options) {}

  MeshPeer& Of(MeshRoute route);
  // nullptr: nothing was sent to or received from it.
  MeshPeer* Find(MeshRoute route);
  // The first stripe of the only rank with connections; null if there are several.
  MeshPeer* FindOnly();
  std::vector<MeshPeer*> StripesOf(uint32_t rank);
  // The stripes of each rank.
  std::map<uint32_t, std::vector<MeshPeer*>> Ranks() const;
  // Calls body(MeshPeer&) for every stripe.
  template <typename Body>
  void ForEach(Body body) {
    for (auto& [number, peer] : peers_) body(*peer);
  }
  MeshAnyReceives& any() { return any_; }
  // In a forked child: closes every descriptor and touches nothing else.
  void CloseInForkedChild();

  // Something arrived over the connection on which this process answers: the kernel acknowledges it
  // with the answer.
  void OweAcknowledgement(MeshPeer& peer) { peer.owes = owes_ = true; }
  // Acknowledges that at once, if no answer will follow soon. To the peer's kernel bytes are in
  // flight until they are acknowledged, from which it computes the speed of the link.
  void Acknowledge();

  // How fast bytes went to the peers, in ascending order of rank.
  std::vector<MeshLink> Links() const;
  // This many bytes moved from or to the peer.
  void NoteMoved(MeshPeer& peer, size_t bytes) {
    moved_ += bytes;
    peer.moved += bytes;
  }
  // Bytes so far, in both directions: with all, and with the group.
  uint64_t moved() const { return moved_; }
  uint64_t MovedWith(std::span<const uint32_t> group);
  // A peer is lost, other than by a goodbye.
  void NoteLoss() { ++losses_; }
  // The first such loss in the group.
  Status LossIn(std::span<const uint32_t> group);

 private:
  const MeshPeerOptions options_;
  MeshAnyReceives any_;
  std::unordered_map<uint64_t, std::unique_ptr<MeshPeer>> peers_;  // by the number of the route
  uint32_t stripes_ = 1;                                           // the most of any peer
  bool owes_ = false;                                              // to any peer
  uint64_t moved_ = 0;
  uint32_t losses_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_PEER_TABLE_H_
