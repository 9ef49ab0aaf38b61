// MeshPeers: the peers of a mesh, the messages to and from each, and the connections over which
// they go. No thread and no clock: every call needs the mesh's lock.
#ifndef HVD_RUNTIME_NET_MESH_MESH_PEERS_H_
#define HVD_RUNTIME_NET_MESH_MESH_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_peer.h"
#include "runtime/net/mesh/mesh_peer_table.h"
#include "runtime/net/mesh/mesh_signs.h"

namespace hvd {

class MeshPeersOwner {
 public:
  virtual ~MeshPeersOwner() = default;
  // Called for the first send to a peer; ends in Attach or Lose.
  virtual void Dial(MeshRoute to) = 0;
  // This peer's handshake with us has begun and not ended.
  virtual bool Expects(MeshRoute from) const = 0;
  // A peer has aborted the work of all, and why.
  virtual void GaveUp(const std::string& why) = 0;
};

class MeshPeers {
 public:
  // Connections are watched by the epoll, under MeshEventKey.
  MeshPeers(const MeshPeerOptions& options, int epoll, MeshPeersOwner& owner)
      : epoll_(epoll), owner_(owner), table_(options) {}

  MeshPeerTable& table() { return table_; }

  // The transfers must stay valid until done or cancelled; a finished one begins nothing. All that
  // can go to a peer at once goes in one system call.
  void Begin(std::span<MeshTransfer* const> transfers);
  void GiveUp(MeshTransfer* transfer);

  // A connection whose handshake is over; its socket is in the epoll already.
  void Attach(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting);
  void HandleIncoming(MeshRoute route, uint32_t events);
  void HandleOutgoing(MeshRoute route, uint32_t events);
  // Reads the connection that last delivered something, up to the end of this transfer.
  void ReadFor(MeshPeer& peer, const MeshTransfer& until) { Read(peer, *peer.last, &until); }

  // With all its stripes. If it left with a goodbye, each connection carries one, and its last
  // messages may be on any: then only this stripe and those without a connection are lost.
  void Lose(MeshPeer& peer, const Status& why);
  void LoseAll(const Status& why);
  // Loses peers that closed our connection to them before the handshake of theirs to us ended, once
  // it has.
  void LoseLate();
  // Loses the peers whose hosts were silent for kSilenceLost; returns those silent for at least
  // kReportedSilence.
  std::vector<MeshSilence> LoseSilent();
  // `why`: "" if this process just leaves.
  void SendGoodbye(const std::string& why);

 private:
  MeshOutbox& OutboxFor(MeshPeer& peer, const MeshTransfer& transfer) const;
  void Queue(MeshTransfer* transfer);
  void BeginReceiveOfAny(MeshTransfer* transfer);
  // `until`: null to read all that has arrived.
  void Read(MeshPeer& peer, MeshConnection& from, const MeshTransfer* until);
  bool ReadSome(MeshPeer& peer, MeshConnection& from, const MeshTransfer* until);
  void ReadHeld(MeshPeer& peer);
  void ReadLast(uint32_t rank);
  void Write(MeshPeer& peer, MeshConnection& over);
  void WriteBoth(MeshPeer& peer);
  void Dial(MeshPeer& peer);
  void Arm(MeshPeer& peer, MeshConnection& connection);
  void Handle(MeshPeer& peer, MeshConnection& connection, uint32_t events);
  void End(MeshPeer& peer, MeshConnection& connection, int error);
  void EndHeld(MeshPeer& peer, MeshConnection& connection);
  void EndOfIncoming(MeshPeer& peer, const std::string& why);
  void EndOfOutgoing(MeshPeer& peer, int error);
  void LoseStripe(MeshPeer& peer, const Status& why);

  const int epoll_;
  MeshPeersOwner& owner_;
  MeshPeerTable table_;
  std::vector<std::pair<MeshPeer*, std::string>> late_;  // as in LoseLate, and why
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_PEERS_H_
