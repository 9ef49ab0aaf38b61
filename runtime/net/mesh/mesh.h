// Mesh: tagged messages between processes of a job that talk across hosts, addressed by world rank.
// TCP; a pair connects when the first message is sent. PROTOCOL.md, section 3, has the bytes.
//
// Each direction of a pair has a connection of its own, made by the side that sends: two that begin
// at once never meet. A thread that waits moves the bytes of all (a thread of its own would cost
// two switches a message), and who waits for data rather than who waits for whatever comes next
// (WaitSmall); a thread of the mesh does so while nobody waits. Thread-safe; Abort and Wake from
// any thread.
#ifndef HVD_RUNTIME_NET_MESH_MESH_H_
#define HVD_RUNTIME_NET_MESH_MESH_H_

#include <sys/epoll.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_fork.h"
#include "runtime/net/mesh/mesh_resolver.h"
#include "runtime/net/mesh/mesh_silence.h"

namespace hvd {

struct MeshOptions {
  uint32_t rank = 0;
  uint64_t generation = 0;
  std::string job_key;  // the secret of the job; never empty
  ListenHints listen;
  Duration connect_timeout = std::chrono::seconds(30);
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration spin =
      Duration::zero();  // how long who waits for data looks after the last byte, before it sleeps
  size_t most_kept_bytes = 16 << 20;  // messages of one peer that nobody has asked for yet
  std::function<std::string(uint32_t)> name = {};  // of who cannot be reached; empty: "rank N"
};

struct MeshSilence {
  uint32_t rank = 0;
  Duration silent{};
};

class Mesh;

// One Send or Receive under way; dropping it gives it up. When bytes of it are under way, that
// costs the connection, so that nobody touches its memory afterwards. Not used by two threads at
// once; gone before the mesh.
class MeshHandle {
 public:
  MeshHandle() = default;
  MeshHandle(MeshHandle&& other) noexcept = default;
  MeshHandle& operator=(MeshHandle&& other) noexcept;
  ~MeshHandle() { GiveUp(); }

 private:
  friend class Mesh;
  MeshHandle(Mesh* mesh, std::unique_ptr<MeshTransfer> transfer)
      : mesh_(mesh), transfer_(std::move(transfer)) {}
  void GiveUp();

  Mesh* mesh_ = nullptr;
  std::unique_ptr<MeshTransfer> transfer_;
};

struct MeshMessage {
  uint32_t from = 0;
  std::string bytes;
};

class Mesh final : private MeshConnectorOwner, private ForkParticipant {
 public:
  // Listens, and says in the directory where. The directory outlives the mesh.
  static Result<std::unique_ptr<Mesh>> Open(MeshOptions options, KvStore& directory);
  // Says goodbye to everybody.
  ~Mesh() override;
  Mesh(const Mesh&) = delete;

  // Both sides name the same tag; messages of one tag arrive in the order in which they were sent.
  // The memory must stay until the handle is done or gone.
  MeshHandle Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes);
  // Exactly as many bytes as are sent; kMismatch otherwise.
  MeshHandle Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes);
  // A message of at most kMeshEagerBytes, of `peer` or kAnyMeshPeer. The loss of a peer is no end
  // of the latter.
  MeshHandle ReceiveSmall(uint32_t peer, MeshTag tag);

  // kInProgress at the deadline: the transfer is still under way. When one of `group` is lost,
  // other than by leaving in peace, the wait ends with that: who is waited for may be waiting for
  // the lost one.
  Status Wait(MeshHandle& handle, TimePoint deadline, std::span<const uint32_t> group = {});
  // The same for all of them, up to the first that fails.
  Status WaitAll(std::span<MeshHandle> handles, TimePoint deadline,
                 std::span<const uint32_t> group = {});
  // The same for as long as anything comes from the group or goes to it: kInProgress when nothing
  // did for `idle_limit`.
  Status WaitWhileMoving(std::span<MeshHandle> handles, Duration idle_limit,
                         std::span<const uint32_t> group);
  // The same for ReceiveSmall; kInProgress also after Wake. A message is the end of the handle; one
  // that is dropped without having seen its message leaves it to the next receive.
  Result<MeshMessage> WaitSmall(MeshHandle& handle, TimePoint deadline);
  // Ends the WaitSmall that is under way, or the next one.
  void Wake();

  // Every wait, now and later, returns `why`; all connections are closed. The peers are told and do
  // the same, because who waits for one of them may wait for us in truth.
  void Abort(const Status& why);

  // Peers of whose hosts nothing is heard, though they were asked, and for how long; from
  // kSilenceTold on.
  std::vector<MeshSilence> Silences() const;

  // Where we reached the peer last, without a port; empty: nowhere yet.
  std::string AddressOf(uint32_t rank);

  // What was put into the directory, for messages and tests.
  const MeshRecord& record() const { return record_; }

 private:
  friend class MeshHandle;
  enum class Dial : uint8_t { kNone, kInFlight, kDone };
  struct Peer {
    Peer(uint32_t r, size_t most_kept, MeshAnyReceives& any)
        : rank(r), inbox(r, most_kept, outbox, any), reader(inbox) {}
    bool LeftInPeace() const { return inbox.bye() && inbox.bye_text().empty(); }

    const uint32_t rank;
    MeshOutbox outbox;
    MeshInbox inbox;
    MeshReader reader;
    UniqueFd in, out;
    std::string address;                     // the last one that we saw it at
    uint32_t in_events = 0, out_events = 0;  // what the epoll looks for
    Dial dial = Dial::kNone;
    uint64_t moved = 0;  // bytes, in both directions
    Status lost;         // not ok: nothing comes or goes any more
  };
  // A thread that waits.
  struct Waiter {
    std::span<MeshHandle> handles;  // without those at the front that are done
    TimePoint deadline;
    bool patient = false;  // wakeable, and gladly lets others drive
    std::span<const uint32_t> group = {};
    std::condition_variable turn = {};  // it drives now, or must return
  };
  using Lock = std::unique_lock<std::mutex>;

  Mesh(MeshOptions options, KvStore& directory, MeshListener listener);
  Status Start(KvStore& directory);

  MeshHandle Begin(std::unique_ptr<MeshTransfer> transfer);
  void BeginReceive(MeshTransfer* transfer);
  void BeginReceiveOfAny(MeshTransfer* transfer);
  void GiveUp(MeshTransfer* transfer);
  void Forget(MeshTransfer* transfer);
  // In mesh_wait.cc: who waits, and who of them drives, that is, reads, writes and accepts for all.
  Status WaitFor(Waiter& waiter);
  uint64_t MovedWith(std::span<const uint32_t> group);
  const MeshTransfer* Awaited(Waiter& waiter);
  bool MustReturn(Waiter& waiter);
  Status LossIn(std::span<const uint32_t> group);
  void WaitForTurn(Waiter& waiter, Lock& lock);
  void PassOn();
  void SendToWaiters();
  void SendToAll();
  void Drive(Waiter& waiter, Lock& lock);
  void ReadAwaited(Waiter& waiter);
  void LetOthersIn(Lock& lock);
  void PollOnce(Lock& lock, int timeout_ms);
  void HandleEvent(const epoll_event& event, TimePoint now);
  void HandleOutgoing(Peer& peer, uint32_t events);
  void RunThread();
  void Kick();

  Peer& PeerOf(uint32_t rank);
  Peer* FindPeer(uint64_t rank);
  void Connect(Peer& peer);
  void Resolved(uint32_t rank, Result<MeshRecord> record);
  void Connected(uint32_t rank, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t rank, Status why) override;

  void Read(Peer& peer, const MeshTransfer* until);
  void Write(Peer& peer);
  void Arm(Peer& peer);
  void EndOfIncoming(Peer& peer, const std::string& why);
  void EndOfOutgoing(Peer& peer, int error);
  void Lose(Peer& peer, const Status& why);
  void LoseLate();
  void LookForSilence(TimePoint now);
  std::string NameOf(const Peer& peer) const;
  // In a forked child: closes every descriptor and touches nothing else.
  void LockForFork() override { mutex_.lock(); }
  void UnlockAfterFork() override { mutex_.unlock(); }
  void CloseInForkedChild() override;
  void AbortAll(const Status& why, const std::string& told);
  void SendGoodbye(const std::string& why);

  const MeshOptions options_;
  MeshRecord record_;
  UniqueFd epoll_, kick_;

  std::mutex mutex_;               // guards what follows
  std::condition_variable quiet_;  // for the thread of the mesh while others drive
  Waiter* driver_ = nullptr;
  std::vector<Waiter*> waiters_;  // that do not drive
  bool hand_over_ = false;        // the driver is to let another one drive
  bool resting_ = false;          // the thread of the mesh, until nobody drives
  uint64_t drives_ = 0;           // waits so far
  uint64_t moved_ = 0;            // bytes, in both directions
  uint32_t losses_ = 0;           // peers lost, other than by leaving in peace
  bool stopping_ = false;
  bool wake_ = false;
  Status aborted_;
  std::unordered_map<uint32_t, std::unique_ptr<Peer>> peers_;
  // Peers that closed our connection to them, and why, while theirs to us is in its handshake.
  std::vector<std::pair<uint32_t, std::string>> late_;
  MeshAnyReceives any_;
  MeshConnector connector_;

  MeshResolver resolver_;
  TimePoint next_silence_look_{};

  mutable std::mutex silences_mutex_;
  std::vector<MeshSilence> silences_;  // guarded by it, so that asking waits for nobody that drives

  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_H_
