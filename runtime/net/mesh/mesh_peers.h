// MeshPeers: the peers of a mesh, the messages to and from each, and the connections over which
// they go. No thread and no clock: every call needs the mesh's lock.
#ifndef HVD_RUNTIME_NET_MESH_MESH_PEERS_H_
#define HVD_RUNTIME_NET_MESH_MESH_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_link.h"
#include "runtime/net/mesh/mesh_silence.h"

namespace hvd {

// One stripe of a peer: its connection in each direction, and the messages that go over them.
struct MeshPeer {
  enum class Dial : uint8_t { kNone, kInFlight, kDone };

  MeshPeer(MeshRoute to, size_t most_kept, MeshAnyReceives& any)
      : rank(to.rank), stripe(to.stripe), inbox(to.rank, most_kept, outbox, any), reader(inbox) {}
  bool LeftInPeace() const { return inbox.bye() && inbox.bye_text().empty(); }
  // "rank 3 at 10.0.0.7:4242".
  std::string Name() const;
  MeshRoute route() const { return {rank, stripe}; }

  const uint32_t rank, stripe;
  MeshOutbox outbox;
  MeshInbox inbox;
  MeshReader reader;
  UniqueFd in, out;
  std::string address;                     // the last one that we saw it at
  uint32_t in_events = 0, out_events = 0;  // what the epoll looks for
  Dial dial = Dial::kNone;
  bool ending = false;  // its incoming connection has ended
  bool queued = false;  // MeshPeers::Begin has something to move
  uint64_t moved = 0;   // bytes, in both directions
  Status lost;          // not ok: nothing comes or goes any more
};

class MeshPeersOwner {
 public:
  virtual ~MeshPeersOwner() = default;
  // Something is to be sent to a peer for the first time; ends in Attach or Lose.
  virtual void Dial(MeshRoute to) = 0;
  // This peer has said hello to us, and its handshake goes on.
  virtual bool Expects(MeshRoute from) const = 0;
  // A peer has ended the work of all, and says why.
  virtual void GaveUp(const std::string& why) = 0;
};

class MeshPeers {
 public:
  // Connections are watched by the epoll, under MeshEventKey. `most_kept`: bytes of messages of one
  // peer that no receive has asked for yet.
  MeshPeers(int epoll, size_t most_kept, MeshPeersOwner& owner)
      : epoll_(epoll), most_kept_(most_kept), owner_(owner) {}

  MeshPeer& Of(MeshRoute route);
  // nullptr: nothing was sent to it or came from it.
  MeshPeer* Find(MeshRoute route);
  // The first stripe of the only rank that there are connections with; null where there are others.
  MeshPeer* FindOnly();

  // The transfers stay until they are done or given up; one that is done already begins nothing.
  // All that can go to a peer at once goes in one system call.
  void Begin(std::span<MeshTransfer* const> transfers);
  void GiveUp(MeshTransfer* transfer);

  // A connection whose handshake is over; its socket is in the epoll already.
  void Attach(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting);
  void HandleIncoming(MeshRoute route, uint32_t events);
  void HandleOutgoing(MeshRoute route, uint32_t events);
  // Up to the end of this transfer; nullptr: whatever has come.
  void Read(MeshPeer& peer, const MeshTransfer* until);

  // With all its stripes. Where it left in peace, each connection says so, and its last messages
  // may be on any: then only this stripe and those without a connection are lost.
  void Lose(MeshPeer& peer, const Status& why);
  void LoseAll(const Status& why);
  // Peers that closed our connection to them before theirs to us was through its handshake, once
  // that is over.
  void LoseLate();
  // Loses the peers of whose hosts nothing was heard for kSilenceLost; the others that are silent
  // are returned, from kSilenceTold on.
  std::vector<MeshSilence> LoseSilent();
  // How fast bytes went to the peers, by rank in ascending order.
  std::vector<MeshLink> Links() const;
  // `why`: "" when this process leaves in peace.
  void SendGoodbye(const std::string& why);
  // In a forked child: closes every descriptor and touches nothing else.
  void CloseInForkedChild();

  // The loss of one of the group, other than by leaving in peace.
  Status LossIn(std::span<const uint32_t> group);
  // Bytes so far, in both directions: with all, and with the group.
  uint64_t moved() const { return moved_; }
  uint64_t MovedWith(std::span<const uint32_t> group);

 private:
  void Queue(MeshTransfer* transfer);
  void BeginReceiveOfAny(MeshTransfer* transfer);
  void Write(MeshPeer& peer);
  void Dial(MeshPeer& peer);
  void Arm(MeshPeer& peer);
  void EndOfIncoming(MeshPeer& peer, const std::string& why);
  void EndOfOutgoing(MeshPeer& peer, int error);
  void LoseStripe(MeshPeer& peer, const Status& why);
  std::vector<MeshPeer*> StripesOf(uint32_t rank);
  std::map<uint32_t, std::vector<MeshPeer*>> Ranks() const;

  const int epoll_;
  const size_t most_kept_;
  MeshPeersOwner& owner_;
  std::unordered_map<uint64_t, std::unique_ptr<MeshPeer>> peers_;  // by the number of the route
  uint32_t stripes_ = 1;                                           // the most of any peer
  std::vector<std::pair<MeshPeer*, std::string>> late_;            // as in LoseLate, and why
  MeshAnyReceives any_;
  uint64_t moved_ = 0;
  uint32_t losses_ = 0;  // peers lost, other than by leaving in peace
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_PEERS_H_
