// The messages that one process has to send to one peer (MeshOutbox) and those received from it
// (MeshInbox): matches messages with sends and receives. Pure: no descriptors, no threads; the
// mesh's lock guards both.
//
// A message of at most kMeshEagerBytes is sent at once. A larger one waits until the receiver has
// announced room for it, so that it is received directly into its place and never blocks others. If
// both sides declare it eager, it is sent at once as well, and its connection is not read further
// until the receiver asks for it.
#ifndef HVD_RUNTIME_NET_MESH_MESH_BOXES_H_
#define HVD_RUNTIME_NET_MESH_MESH_BOXES_H_

#include <sys/uio.h>

#include <array>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/net/mesh/mesh_frame.h"

namespace hvd {

// Processes a message as it arrives, without memory for all of it.
class MeshConsumer {
 public:
  virtual ~MeshConsumer() = default;
  // Where the bytes go: the same place for a whole message, of any size but 0. Consumers of
  // messages of one peer, tag and stripe may share it, since those arrive in sequence.
  virtual std::span<std::byte> window() = 0;
  // The next `count` bytes have arrived: a full window, or the rest of the message. Called by the
  // thread that moves the bytes, under the mesh's lock: must not call the mesh, nor take longer
  // than a copy of the window.
  virtual void Consume(size_t count) = 0;
};

// One Send or Receive in progress. Owned by its handle; the boxes point to it until it is done or
// cancelled.
struct MeshTransfer {
  enum class Kind : uint8_t { kSend, kReceive, kReceiveSmall };

  Kind kind = Kind::kSend;
  uint32_t peer = 0;    // kAnyMeshPeer: of the first to send
  uint32_t stripe = 0;  // the connection that it goes over
  MeshTag tag;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  size_t bytes = 0;
  MeshConsumer* consumer = nullptr;  // of a kReceive, instead of `to`
  bool eager = false;                // needs no permission, whatever its size
  std::string small;                 // what kReceiveSmall got
  bool done = false;
  Status status;

  // Whether it is sent only after its receiver has announced room.
  bool needs_leave() const { return bytes > kMeshEagerBytes && !eager; }
  void Finish(Status how) {
    done = true;
    status = std::move(how);
  }
};

inline constexpr uint32_t kAnyMeshPeer = UINT32_MAX;

// In order. Few at a time, so the first with a tag is found by a linear search.
using MeshTransfers = std::vector<MeshTransfer*>;
template <typename Queue>
using ByMeshTag = std::unordered_map<MeshTag, Queue, MeshTagHash>;

class MeshOutbox {
 public:
  // `numbered`: frames of this process to this peer and stripe so far, in all outboxes for it.
  // Outlives the outbox.
  explicit MeshOutbox(uint64_t& numbered) : numbered_(numbered) {}

  // The transfer's memory must stay valid until it is done or cancelled.
  void Send(MeshTransfer* transfer);
  // The peer has room for one large message with this tag.
  void ReceiveReady(MeshTag tag);
  // Sends that to the peer, before anything not yet on the wire, as the peer waits for it.
  void PutReady(MeshTag tag);
  void PutBye(std::string why);

  bool empty() const { return queue_.empty(); }
  // Whether a message with this tag waits for permission: later ones queue behind it.
  bool Parks(MeshTag tag) const { return parked_.contains(tag); }
  // The bytes to write next, at most room.size() pieces; report the bytes written by Sent.
  size_t Pieces(std::span<iovec> room) const;
  void Sent(size_t count);
  // False if part of it is already on the wire: then only closing the connection frees the memory.
  bool Cancel(const MeshTransfer* transfer);
  void Fail(const Status& why);

 private:
  struct Item {
    MeshHeader header;
    const std::byte* payload;
    size_t bytes;
    MeshTransfer* transfer;  // nullptr: the payload is `own`
    std::string own;
  };

  void Put(MeshFrameType type, MeshTag tag, std::string payload);
  void Enqueue(MeshTransfer* transfer);

  uint64_t& numbered_;
  std::deque<Item> queue_;
  size_t sent_ = 0;  // bytes of the first item
  ByMeshTag<MeshTransfers>
      parked_;  // large ones without permission, and those after them with the same tag
  ByMeshTag<size_t> ready_;  // unused permissions
};

// Receives "of the first to send", shared by the inboxes of all peers.
using MeshAnyReceives = MeshTransfers;

// The frames of one peer and stripe may arrive over two connections, with a reader each. They are
// processed in order of their numbers: a reader is held while the other has an earlier frame to
// deliver.
class MeshInbox final : public MeshSink {
 public:
  // Keeps at most `most_kept` unrequested bytes; beyond that the connection is not read.
  MeshInbox(uint32_t peer, size_t most_kept, MeshOutbox& outbox, MeshAnyReceives& any)
      : peer_(peer), most_kept_(most_kept), outbox_(outbox), any_(any) {}

  // Done at once if the message has already arrived.
  void Receive(MeshTransfer* transfer);
  // For a receive of the first to send. True if a message was kept.
  bool ReceiveKept(MeshTransfer* transfer);
  // False if part of the message is already in its memory.
  bool Cancel(const MeshTransfer* transfer);
  void Fail(const Status& why);

  // Numbered frames so far.
  uint64_t taken() const { return taken_; }
  // Whether a large message has completed since the last call.
  bool PopCompletedLarge() { return std::exchange(completed_large_, false); }
  // The peer has said goodbye, and why ("" if it just left).
  bool bye() const { return bye_; }
  void NoteBye() { bye_ = true; }  // which arrived by another stripe
  const std::string& bye_text() const { return bye_text_; }

  // MeshSink
  Result<MeshPlace> Begin(const MeshFrame& frame) override;
  void Consume(size_t count) override { direct_->consumer->Consume(count); }
  Status End(const MeshFrame& frame) override;

 private:
  Result<MeshPlace> PlaceOf(const MeshFrame& frame);
  MeshPlace KeepRoom(size_t bytes);
  void Deliver(MeshTag tag);
  MeshTransfer* PopReceive(MeshTag tag);
  void Hand(std::string message, MeshTransfer* transfer);

  const uint32_t peer_;
  const size_t most_kept_;
  MeshOutbox& outbox_;
  MeshAnyReceives& any_;
  MeshTransfers posted_;
  ByMeshTag<std::deque<std::string>> kept_;
  size_t kept_bytes_ = 0;
  uint64_t taken_ = 0;
  bool taking_ = false;  // the frame after those
  bool completed_large_ = false;
  std::string
      arriving_;  // a message being received into kept_, or for a receive that comes in time
  MeshTransfer* direct_ = nullptr;  // a message being received directly into its place
  bool bye_ = false;
  std::string bye_text_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_BOXES_H_
