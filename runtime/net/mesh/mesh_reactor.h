// MeshReactor: a mesh without its threads and waits: connections, messages, new and lost peers. No
// thread and no clock: every call needs the mesh's lock.
#ifndef HVD_RUNTIME_NET_MESH_MESH_REACTOR_H_
#define HVD_RUNTIME_NET_MESH_MESH_REACTOR_H_

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_peers.h"
#include "runtime/net/mesh/mesh_signs.h"

namespace hvd {

struct MeshReactorOptions {
  MeshConnectorOptions connector;
  size_t most_kept_bytes = 0;  // as in MeshOptions
  bool proves_routes = false;  // likewise
  int epoll = -1;
  int kick = -1;  // an eventfd that ends an epoll_wait
  // Looks up where this peer listens; the answer goes to Resolved.
  std::function<void(uint32_t)> resolve;
};

class MeshReactor final : private MeshConnectorOwner, private MeshPeersOwner {
 public:
  // `signs` outlives it.
  MeshReactor(MeshReactorOptions options, MeshListener listener, MeshSigns& signs);

  // The transfers must stay valid until done or cancelled.
  void Begin(std::span<MeshTransfer* const> transfers);
  void GiveUp(MeshTransfer* transfer) { peers_.GiveUp(transfer); }
  // Reads from the peer that this receive waits for, without asking the epoll.
  void ReadFor(const MeshTransfer& transfer);

  // The driving thread is about to sleep.
  void Acknowledge() { peers_.table().Acknowledge(); }
  // Handles the epoll's events, in any order; then whatever is due.
  void Handle(std::span<epoll_event> events, TimePoint now);
  // When Handle has work without any event.
  TimePoint NextTick() const;
  void Resolved(uint32_t rank, const Result<MeshRecord>& record, TimePoint now);

  // Ends all transfers, now and later, with `why`. Sends `goodbye` to the peers.
  void Abort(const Status& why, const std::string& goodbye);
  void SendGoodbye() { peers_.SendGoodbye(""); }
  // In a forked child: closes every descriptor and touches nothing else.
  void CloseInForkedChild();

  Status LossIn(std::span<const uint32_t> group) { return peers_.table().LossIn(group); }
  uint64_t moved() { return peers_.table().moved(); }
  uint64_t MovedWith(std::span<const uint32_t> group) { return peers_.table().MovedWith(group); }
  // "rank 3 at 10.0.0.7:4242".
  std::string NameOf(uint32_t rank) { return peers_.table().Of({rank}).Name(); }
  // Where the peer was last reached, without a port; empty: not yet.
  std::string AddressOf(uint32_t rank);
  // Where this process listens.
  const MeshRecord& record() const { return record_; }

 private:
  void HandleOne(const epoll_event& event, TimePoint now);

  // MeshConnectorOwner
  void Connected(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t rank, Status why) override;
  // MeshPeersOwner
  void Dial(MeshRoute to) override;
  bool Expects(MeshRoute from) const override { return connector_.Expects(from); }
  void GaveUp(const std::string& why) override { Abort(Aborted(why), why); }

  const uint32_t rank_;
  const int kick_;
  const std::function<void(uint32_t)> resolve_;
  const MeshRecord record_;
  MeshSigns& signs_;
  MeshPeers peers_;
  MeshConnector connector_;
  std::map<uint32_t, std::vector<MeshRoute>> asked_;  // to be dialled, by rank
  Status aborted_;
  TimePoint next_silence_look_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_REACTOR_H_
