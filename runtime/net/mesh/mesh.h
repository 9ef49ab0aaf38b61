// Mesh: tagged messages between processes of a job that talk across hosts, addressed by world rank.
// TCP; a pair connects when the first message is sent. PROTOCOL.md, section 3, has the bytes.
//
// Each direction of a pair has its own connection, made by the sender, so simultaneous connects
// never collide. Small messages of the higher rank go back over the lower one's. Large messages may
// use further connections, stripes, if one does not fill the link. A waiting thread moves the bytes
// of all, because a thread of the mesh would cost two switches per message; preferably one that
// waits for data, not for any message (ReceiveSmall). A thread of the mesh does so while no other
// waits. Thread-safe; Abort and Wake from any thread.
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
#include "runtime/net/mesh/mesh_signs.h"

namespace hvd {

struct MeshOptions {
  uint32_t rank = 0;
  uint64_t generation = 0;
  std::string job_key;  // the secret of the job; never empty
  ListenHints listen;
  Duration connect_timeout = std::chrono::seconds(30);
  Duration handshake_timeout = std::chrono::seconds(10);
  // How long a thread that waits for data polls after the last byte before it sleeps.
  Duration spin = Duration::zero();
  size_t most_kept_bytes = 16 << 20;  // limit of messages from one peer without a receive
  // A sent message proves that this process reaches the peer: it always uses a connection that this
  // process has dialled, never one of the peer.
  bool proves_routes = false;
  std::function<std::string(uint32_t)> name = {};  // of an unreachable peer; empty: "rank N"
};

// Whether a thread that waits for a small message sleeps at once, or first spins for
// MeshOptions::spin.
enum class MeshPatience : uint8_t { kSleeps, kSpins };

// What a thread that waits for data does once it has them: it leaves, or it returns within a
// millisecond to wait for more, and meanwhile no thread that waits for small messages is woken to
// move bytes in its place.
enum class MeshAfter : uint8_t { kGoes, kReturns };

struct MeshMessage {
  uint32_t from = 0;
  std::string bytes;
};

class Mesh final {
 public:
  // Listens, and publishes the address in the directory, which outlives the mesh.
  static Result<std::unique_ptr<Mesh>> Open(MeshOptions options, KvStore& directory);
  // Says goodbye to all peers.
  ~Mesh();
  Mesh(const Mesh&) = delete;

  // Both sides name the same tag and stripe, which is below kMostMeshStripes; messages of one tag
  // and stripe arrive in sending order. The memory must stay valid until the handle is done or
  // gone.
  MeshHandle Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                  uint32_t stripe = 0);
  // Must match the number of bytes sent; kMismatch otherwise.
  MeshHandle Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes, uint32_t stripe = 0);

  // kInProgress at the deadline: the transfer continues. The wait also fails when one of `group` is
  // lost, other than by a goodbye: the peer may itself be waiting for the lost one.
  Status Wait(MeshHandle& handle, TimePoint deadline, std::span<const uint32_t> group = {});
  // Whether it is done or has failed, so that Wait returns at once.
  bool IsOver(const MeshHandle& handle);
  // The same for all of them, up to the first that fails.
  Status WaitAll(std::span<MeshHandle> handles, TimePoint deadline,
                 std::span<const uint32_t> group = {}, MeshAfter after = MeshAfter::kGoes);
  // The same as long as bytes move from or to the group: kInProgress after `idle_limit` without
  // any.
  Status WaitWhileMoving(std::span<MeshHandle> handles, Duration idle_limit,
                         std::span<const uint32_t> group, MeshAfter after = MeshAfter::kGoes);
  // The next message of at most kMeshEagerBytes, of `peer` or kAnyMeshPeer; the loss of a peer does
  // not end the latter. kInProgress at the deadline (a past one: checks once) and after Wake.
  Result<MeshMessage> ReceiveSmall(uint32_t peer, MeshTag tag, TimePoint deadline,
                                   MeshPatience patience = MeshPatience::kSleeps);
  // Send, done if the whole message goes at once, as small ones almost always do. Otherwise
  // kInProgress, and `rest` is what Send returns.
  Status SendNow(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes, MeshHandle* rest);
  // Ends the current ReceiveSmall, or the next one.
  void Wake() { driver_.Wake(); }

  // Every wait, now and later, returns `why`; all connections are closed. The peers are notified
  // and do the same, because a rank that waits for one of them may actually wait for us.
  void Abort(const Status& why);

  // Peers whose hosts do not answer probes, and for how long; from kReportedSilence on.
  std::vector<MeshSilence> Silences() const { return signs_.Silences(); }
  // Links to the peers to which something was sent, as of the last second.
  std::vector<MeshLink> Links() const { return signs_.Links(); }

  // Where the peer was last reached, without a port; empty: not yet.
  std::string AddressOf(uint32_t rank);

  // The record in the directory, for messages and tests.
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

// Sends and receives that begin together when this object is destroyed: all that can go to a peer
// at once goes in one system call. The handles outlive it.
class MeshStart {
 public:
  // `eager`: large messages need no permission from the receiver; set on both sides. A late
  // receiver delays all that its peer sends after them over this stripe.
  explicit MeshStart(Mesh& mesh, bool eager = false) : mesh_(mesh), eager_(eager) {}
  ~MeshStart() { mesh_.Begin(transfers_); }
  MeshStart(const MeshStart&) = delete;

  // As those of the Mesh.
  MeshHandle Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                  uint32_t stripe = 0);
  MeshHandle Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes, uint32_t stripe = 0);
  // Exactly `bytes` bytes, as they arrive. The consumer and its window must stay valid until the
  // handle is done or gone.
  MeshHandle Receive(uint32_t peer, MeshTag tag, MeshConsumer& consumer, size_t bytes,
                     uint32_t stripe = 0);

 private:
  MeshHandle Add(MeshTransfer transfer);

  Mesh& mesh_;
  const bool eager_;
  std::vector<MeshTransfer*> transfers_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_H_
