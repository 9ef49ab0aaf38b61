// Makes the connections of a mesh: accepts and dials, runs the handshakes, enforces time limits.
// Nothing blocks: the owner passes in events and the time, under its lock, and gets finished
// connections.
//
// All addresses of a peer are tried at once; the first that proves the key is kept. A client
// without the key holds a slot of bounded size for a bounded time and is sent nothing.
#ifndef HVD_RUNTIME_NET_MESH_MESH_CONNECTOR_H_
#define HVD_RUNTIME_NET_MESH_MESH_CONNECTOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {

// The source of an event of the mesh's epoll: the kind in the highest byte, a number below.
enum class MeshSource : uint8_t { kKick, kListener, kNascent, kIncoming, kOutgoing };
constexpr uint64_t MeshEventKey(MeshSource source, uint64_t number) {
  return (static_cast<uint64_t>(source) << 56) | number;
}
constexpr MeshSource SourceOf(uint64_t key) { return static_cast<MeshSource>(key >> 56); }
constexpr uint64_t NumberOf(uint64_t key) { return key & ((uint64_t{1} << 56) - 1); }
// The number of a connection being made.
constexpr uint64_t NumberOfRoute(MeshRoute route) {
  return (uint64_t{route.stripe} << 32) | route.rank;
}
constexpr MeshRoute RouteOf(uint64_t number) {
  return {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
}

// The end of the message about an unreachable peer.
inline constexpr std::string_view kReachAdvice =
    "; look for a firewall between the hosts, or name the network interface or the ports to use";

// The facts of a connection once its handshake is over.
struct MeshGreeting {
  std::string address;    // the peer's
  bool incoming = false;  // the peer connected to us
  uint32_t stripe = 0;    // which connection of this direction
  MeshSessionKeys keys;   // empty unless MeshConnectorOptions asks for them
};

class MeshConnectorOwner {
 public:
  virtual ~MeshConnectorOwner() = default;
  // `socket` is non-blocking and still in the epoll, under the key of a handshake.
  virtual void Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) = 0;
  virtual void Unreachable(uint32_t peer, Status why) = 0;
};

struct MeshConnectorOptions {
  MeshIdentity identity;
  Duration connect_timeout;
  Duration handshake_timeout;                 // of incoming connections
  std::function<std::string(uint32_t)> name;  // of a peer, for messages
  size_t most_strangers = 256;
  bool session_keys = false;  // fill MeshGreeting::keys
};

class MeshConnector {
 public:
  MeshConnector(MeshConnectorOptions options, int epoll, MeshListener listener,
                MeshConnectorOwner& owner);

  // Ends in Connected or Unreachable.
  void Dial(MeshRoute to, std::vector<MeshAddress> addresses, TimePoint now);
  void HandleListener(size_t index, TimePoint now);
  void HandleNascent(uint64_t id, TimePoint now);
  // Drops what took too long, retries what is due.
  void Tick(TimePoint now);
  // When Tick next has work; TimePoint::max(): none.
  TimePoint NextTick() const;
  // This peer's handshake with us for this stripe has begun and not ended.
  bool Expects(MeshRoute from) const;
  // Closes all unfinished connections and the listener.
  void Close();

 private:
  struct Nascent {
    UniqueFd socket;
    std::string address;
    TimePoint deadline;
    bool connecting = false;
    std::unique_ptr<MeshInitiator> initiator;  // one of the two
    std::unique_ptr<MeshResponder> responder;
    MeshRoute to;  // of the initiator
  };
  struct Dialing {
    std::vector<MeshAddress> addresses;
    TimePoint deadline, retry_at = TimePoint::max();
    int round = 0;
    size_t open = 0;          // attempts in progress
    bool all_refused = true;  // nobody listens at any of them
    std::string reasons;
  };
  using NascentPlace = std::map<uint64_t, Nascent>::iterator;

  void StartRound(MeshRoute to, TimePoint now);
  void NoteFailure(MeshRoute to, const std::string& address, const std::string& why, bool refused);
  void EndRoundIfOver(MeshRoute to, TimePoint now);
  void Add(Nascent nascent, uint32_t events);
  void Accept(UniqueFd socket, TimePoint now);
  void PauseListeners(TimePoint until);
  void ResumeListeners();
  // Each returns why this connection is over, or "".
  std::string FinishConnect(NascentPlace at);
  std::string Converse(NascentPlace at, bool* complete);
  void Drop(NascentPlace at, const std::string& why, TimePoint now, bool refused = false);
  void Win(NascentPlace at);

  const MeshConnectorOptions options_;
  const int epoll_;
  MeshListener listener_;
  MeshConnectorOwner& owner_;
  std::map<uint64_t, Nascent> nascents_;
  std::map<MeshRoute, Dialing> dialings_;
  uint64_t next_id_ = 1;
  size_t strangers_ = 0;
  TimePoint accept_again_ = TimePoint::max();
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_CONNECTOR_H_
