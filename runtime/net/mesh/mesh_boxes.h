// The messages that one process has to send to one peer (MeshOutbox) and those that it got from it
// (MeshInbox): matching of messages with sends and receives. Pure: no descriptors, no threads; the
// mesh's lock guards both.
//
// A message of at most kMeshEagerBytes is sent at once. A larger one waits until the receiver has
// said that there is room for it, so that it is received straight into its place and never stands
// in the way of others. Where both sides say that it is eager, it is sent at once as well, and its
// connection is not read on until the receiver asks for it.
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

// Takes a message as it comes, where memory for all of it is not needed.
class MeshTaker {
 public:
  virtual ~MeshTaker() = default;
  // Where the bytes go: the same place for a whole message, of any size but 0. Takers of messages
  // of one peer, tag and stripe may share it, since those come one after the other.
  virtual std::span<std::byte> window() = 0;
  // The next `count` bytes are there: a full window, or the rest of the message. By the thread that
  // moves the bytes, under the lock of the mesh: calls nothing of the mesh, and takes no longer
  // than a copy of the window.
  virtual void Take(size_t count) = 0;
};

// One Send or Receive under way. Owned by its handle; the boxes point to it until it is done or
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
  MeshTaker* taker = nullptr;  // of a kReceive, instead of `to`
  bool eager = false;          // needs no leave, of any size
  std::string small;           // what kReceiveSmall got
  bool done = false;
  Status status;

  // It is not sent before its receiver has said that it has room.
  bool needs_leave() const { return bytes > kMeshEagerBytes && !eager; }
  void Finish(Status how) {
    done = true;
    status = std::move(how);
  }
};

inline constexpr uint32_t kAnyMeshPeer = UINT32_MAX;

// In order. Few at a time, so the first with a tag is found by a look at all.
using MeshTransfers = std::vector<MeshTransfer*>;
template <typename Queue>
using ByMeshTag = std::unordered_map<MeshTag, Queue, MeshTagHash>;

class MeshOutbox {
 public:
  // `numbered`: frames of this process to this peer and stripe so far, in all outboxes for it.
  // Outlives the outbox.
  explicit MeshOutbox(uint64_t& numbered) : numbered_(numbered) {}

  // The memory of the transfer stays until it is done or cancelled.
  void Send(MeshTransfer* transfer);
  // The peer has room for one large message with this tag.
  void ReceiveReady(MeshTag tag);
  // Tells the peer so, before anything that is not on the wire yet: it waits for that.
  void PutReady(MeshTag tag);
  void PutBye(std::string why);

  bool empty() const { return queue_.empty(); }
  // A message with this tag waits for leave: later ones go behind it.
  bool Parks(MeshTag tag) const { return parked_.contains(tag); }
  // The bytes to write next, at most room.size() pieces; Sent says how many bytes went out.
  size_t Pieces(std::span<iovec> room) const;
  void Sent(size_t count);
  // False when part of it is on the wire already: then only giving up the connection frees the
  // memory.
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
      parked_;               // large ones without leave, and what follows them with the same tag
  ByMeshTag<size_t> ready_;  // leaves that nobody has used yet
};

// Receives "of the first to send", shared by the inboxes of all peers.
using MeshAnyReceives = MeshTransfers;

// The frames of one peer and stripe may come over two connections, by a reader each. They are taken
// in the order of their numbers: a reader is held while an earlier frame is to come by the other.
class MeshInbox final : public MeshSink {
 public:
  // Keeps at most `most_kept` bytes that nobody asked for; beyond them the connection is not read.
  MeshInbox(uint32_t peer, size_t most_kept, MeshOutbox& outbox, MeshAnyReceives& any)
      : peer_(peer), most_kept_(most_kept), outbox_(outbox), any_(any) {}

  // Done at once when the message is here already.
  void Receive(MeshTransfer* transfer);
  // For a receive of the first to send. True when one was here.
  bool TakeKept(MeshTransfer* transfer);
  // False when part of the message is in its memory already.
  bool Cancel(const MeshTransfer* transfer);
  void Fail(const Status& why);

  // Numbered frames so far.
  uint64_t taken() const { return taken_; }
  // A large message has ended since the last call.
  bool TookLarge() { return std::exchange(took_large_, false); }
  // The peer has said goodbye, and why ("" when it just left).
  bool bye() const { return bye_; }
  void NoteBye() { bye_ = true; }  // that came by another stripe
  const std::string& bye_text() const { return bye_text_; }

  // MeshSink
  Result<MeshPlace> Begin(const MeshFrame& frame) override;
  void Take(size_t count) override { direct_->taker->Take(count); }
  Status End(const MeshFrame& frame) override;

 private:
  Result<MeshPlace> PlaceOf(const MeshFrame& frame);
  MeshPlace KeepRoom(size_t bytes);
  void Deliver(MeshTag tag);
  MeshTransfer* TakeTaker(MeshTag tag);
  void Give(std::string message, MeshTransfer* transfer);

  const uint32_t peer_;
  const size_t most_kept_;
  MeshOutbox& outbox_;
  MeshAnyReceives& any_;
  MeshTransfers posted_;
  ByMeshTag<std::deque<std::string>> kept_;
  size_t kept_bytes_ = 0;
  uint64_t taken_ = 0;
  bool taking_ = false;  // the frame after those
  bool took_large_ = false;
  std::string arriving_;            // a message on its way to kept_, or to one who asks in time
  MeshTransfer* direct_ = nullptr;  // a message on its way straight to its place
  bool bye_ = false;
  std::string bye_text_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_BOXES_H_
