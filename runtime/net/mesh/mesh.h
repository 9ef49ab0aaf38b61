// Mesh: tagged messages between processes of a job that talk across hosts, addressed by world rank.
// TCP; a pair connects when the first message is sent. PROTOCOL.md, section 3, has the bytes.
//
// Each direction of a pair has a connection of its own, made by the side that sends: two that begin
// at once never meet. Small messages of the higher rank go back over that of the lower one. Large
// messages may take further connections, stripes, where one does not fill the link. A thread that
// waits moves the bytes of all, because a thread of the mesh would cost two switches for each
// message; one that waits for data does so rather than one that waits for any message
// (ReceiveSmall). A thread of the mesh does so while no other one waits.
// Thread-safe; Abort and Wake from any thread.
#ifndef HVD_RUNTIME_NET_MESH_MESH_H_
#define HVD_RUNTIME_NET_MESH_MESH_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_driver.h"
#include "runtime/net/mesh/mesh_handle.h"
#include "runtime/net/mesh/mesh_reactor.h"
#include "runtime/net/mesh/mesh_resolver.h"
#include "runtime/net/mesh/signs/mesh_signs.h"

namespace hvd {

struct MeshOptions {
  uint32_t rank = 0;
  uint64_t generation = 0;
  std::string job_key;  // the secret of the job; never empty
  ListenHints listen;
  Duration connect_timeout = std::chrono::seconds(30);
  Duration handshake_timeout = std::chrono::seconds(10);
  // How long a thread that waits for data looks for more after the last byte, before it sleeps.
  Duration spin = Duration::zero();
  size_t most_kept_bytes = 16 << 20;  // messages of one peer that no receive has asked for yet
  // A message that has gone shows that this process reaches the peer: it went over a connection
  // that this process has dialled, never over one of the peer.
  bool proves_ways = false;
  std::function<std::string(uint32_t)> name = {};  // of an unreachable peer; empty: "rank N"
};

// Of a thread that waits for a small message: it sleeps at once, or spins first as
// MeshOptions::spin says.
enum class MeshPatience : uint8_t { kSleeps, kSpins };

// Of a thread that waits for data: when it has them, it goes, or it returns within a millisecond
// and waits for more. Meanwhile no thread that waits for small messages is woken to move the bytes
// in its place.
enum class MeshAfter : uint8_t { kGoes, kReturns };

struct MeshMessage {
  uint32_t from = 0;
  std::string bytes;
};

class Mesh final {
 public:
  // Listens, and says in the directory where. The directory outlives the mesh.
  static Result<std::unique_ptr<Mesh>> Open(MeshOptions options, KvStore& directory);
  // Says goodbye to all peers.
  ~Mesh();
  Mesh(const Mesh&) = delete;

  // Both sides name the same tag and stripe, which is below kMostMeshStripes; messages of one tag
  // and stripe arrive in the order in which they were sent. The memory must stay until the handle
  // is done or gone.
  MeshHandle Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                  uint32_t stripe = 0);
  // Exactly as many bytes as are sent; kMismatch otherwise.
  MeshHandle Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes, uint32_t stripe = 0);

  // kInProgress at the deadline: the transfer is still under way. When one of `group` is lost,
  // other than by leaving in peace, the wait ends with that: the peer may itself be waiting for the
  // lost one.
  Status Wait(MeshHandle& handle, TimePoint deadline, std::span<const uint32_t> group = {});
  // It is done or has failed, so that Wait returns at once.
  bool IsOver(const MeshHandle& handle);
  // The same for all of them, up to the first that fails.
  Status WaitAll(std::span<MeshHandle> handles, TimePoint deadline,
                 std::span<const uint32_t> group = {}, MeshAfter after = MeshAfter::kGoes);
  // The same for as long as anything comes from the group or goes to it: kInProgress when nothing
  // did for `idle_limit`.
  Status WaitWhileMoving(std::span<MeshHandle> handles, Duration idle_limit,
                         std::span<const uint32_t> group, MeshAfter after = MeshAfter::kGoes);
  // The next message of at most kMeshEagerBytes, of `peer` or kAnyMeshPeer; the loss of a peer does
  // not end the latter. kInProgress at the deadline (one in the past: looks once) and after Wake.
  Result<MeshMessage> ReceiveSmall(uint32_t peer, MeshTag tag, TimePoint deadline,
                                   MeshPatience patience = MeshPatience::kSleeps);
  // Send, and its end where all of the message goes at once, as of a small one almost always.
  // Otherwise kInProgress, and `rest` is what Send returns.
  Status SendNow(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes, MeshHandle* rest);
  // Ends the ReceiveSmall that is under way, or the next one.
  void Wake() { driver_.Wake(); }

  // Every wait, now and later, returns `why`; all connections are closed. The peers are told and do
  // the same, because a rank that waits for one of them may wait for us in truth.
  void Abort(const Status& why);

  // Peers of whose hosts nothing is heard, though they were asked, and for how long; from
  // kReportedSilence on.
  std::vector<MeshSilence> Silences() const { return signs_.Silences(); }
  // To the peers to which something was sent, as of the last second.
  std::vector<MeshLink> Links() const { return signs_.Links(); }

  // Where we reached the peer last, without a port; empty: nowhere yet.
  std::string AddressOf(uint32_t rank);

  // The record that was put into the directory, for messages and tests.
  const MeshRecord& record() const { return record_; }

 private:
  friend class MeshHandle;
  friend class MeshStart;

  Mesh(MeshOptions options, KvStore& directory, MeshListener listener);
  Status Start(KvStore& directory);
  MeshReactorOptions ReactorOptions();

  MeshHandle Begin(MeshTransfer transfer);
  void Begin(std::span<MeshTransfer* const> transfers);
  void BeginLocked(std::span<MeshTransfer* const> transfers) HVD_REQUIRES(driver_.mutex);
  void GiveUp(MeshTransfer* transfer);

  uint64_t MovedWith(std::span<const uint32_t> group);
  void Resolved(uint32_t rank, const Result<MeshRecord>& record);

  const MeshOptions options_;
  const MeshRecord record_;
  MeshSigns signs_;
  MeshDriver driver_;
  MeshResolver resolver_;
  std::thread thread_;
};

// Sends and receives that begin together, when this object goes: all that can go to a peer at once
// goes in one system call. The handles live longer.
class MeshStart {
 public:
  // `eager`: large messages need no leave. Both sides say so. A receiver that comes late holds up
  // all that its peer sends behind them over this stripe.
  explicit MeshStart(Mesh& mesh, bool eager = false) : mesh_(mesh), eager_(eager) {}
  ~MeshStart() { mesh_.Begin(transfers_); }
  MeshStart(const MeshStart&) = delete;

  // As those of the Mesh.
  MeshHandle Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                  uint32_t stripe = 0);
  MeshHandle Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes, uint32_t stripe = 0);
  // Exactly `bytes` bytes, as they come. The taker and its window stay until the handle is done or
  // gone.
  MeshHandle Receive(uint32_t peer, MeshTag tag, MeshTaker& taker, size_t bytes,
                     uint32_t stripe = 0);

 private:
  MeshHandle Add(MeshTransfer transfer);

  Mesh& mesh_;
  const bool eager_;
  std::vector<MeshTransfer*> transfers_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_H_
