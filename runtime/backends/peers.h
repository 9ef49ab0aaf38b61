// Peers: messages between the ranks of one host, without agent or driver on the path.
//
// Each rank has one outgoing stream of records that every other rank reads in order. Records are
// opaque bytes here; the engine writes requests into them. All calls of one object come from one
// thread at a time (the engine's lock), except Sleep.
#ifndef HVD_RUNTIME_BACKENDS_PEERS_H_
#define HVD_RUNTIME_BACKENDS_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hvd {

class Peers {
 public:
  virtual ~Peers() = default;

  virtual uint32_t rank() const = 0;  // among the ranks of this host: the number of a peer
  virtual uint32_t size() const = 0;
  // The largest record in bytes.
  virtual size_t max_record() const = 0;

  // Room for a record of `bytes` (at most max_record()), 8-byte aligned; empty while a peer has not
  // read enough yet. A peer that has left reads nothing more and delays no one.
  virtual std::span<std::byte> Reserve(size_t bytes) = 0;
  // Publishes the record reserved last and wakes peers that sleep.
  virtual void Commit() = 0;

  // The oldest unread record of a peer, or an empty span. Valid until Consume.
  virtual std::span<const std::byte> Peek(uint32_t peer) = 0;
  virtual void Consume(uint32_t peer) = 0;

  // The group cannot continue: a rank died or the job ends. Cheap, because every iteration of a
  // wait checks it.
  virtual bool broken() const = 0;
  virtual std::string broken_text() const = 0;
  // The peer has left the world and sends no more.
  virtual bool HasLeft(uint32_t peer) const = 0;

  // Wakes every sleeping peer, because an operation that it waits for may be complete.
  virtual void WakeAll() = 0;
  // Asks the peers to read their records soon, even if no thread of theirs waits: our stream is
  // full.
  virtual void Nudge() = 0;

  // Wakes the other threads of this rank that sleep here.
  virtual void WakeSelf() = 0;

  // For reports of a stall or a death of this rank: its newest collective, and since when it sleeps
  // for it (steady clock; 0: awake).
  virtual void NoteSubmitted(uint32_t collective, std::string_view name) = 0;
  virtual void NoteSleeping(int64_t since_ns) = 0;
  // A collective failed because of other ranks, and the program does not know yet.
  virtual void NoteFailed() = 0;

  // To sleep: call AnnounceSleep, check once more for the awaited message, call Sleep with the
  // token (at most `timeout_ns`, at most 100 ms) if it is still missing, then EndSleep in any case.
  // Any act of a peer after AnnounceSleep ends the sleep. Only Sleep may overlap other calls.
  virtual uint32_t AnnounceSleep() = 0;
  virtual void Sleep(uint32_t token, int64_t timeout_ns) = 0;
  virtual void EndSleep() = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_PEERS_H_
