// Outbox: sends the announcements of this rank to the other ranks of its host, in order of
// submission, and the notice that the world ends.
//
// Announcements that find no room in the stream wait here. Nothing blocks. One thread at a time
// (the engine's lock).
#ifndef HVD_RUNTIME_CORE_OUTBOX_H_
#define HVD_RUNTIME_CORE_OUTBOX_H_

#include <deque>
#include <string>

#include "runtime/backends/peers.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"

namespace hvd {

class Outbox {
 public:
  Outbox(Peers& peers, NameTable& names) : peers_(peers), names_(names) {}

  // Announces the operation (then op->sent is set), or queues it behind those that found no room.
  void Announce(Operation* op);
  // Announces the first operation of the queue and returns it. Null when the queue is empty or
  // there is still no room.
  Operation* AnnounceNext();
  // The operation is over before it was announced. Does nothing if it is not in the queue.
  void Withdraw(Operation* op) { std::erase(unsent_, op); }
  // Forgets the queue, but not the abort notice.
  void Clear() { unsent_.clear(); }

  // Sends the reason of this rank for ending the world, now or by a later SendAbortNotice().
  void SendAbortNotice(std::string reason);
  // Sends the notice that found no room before, if there is one.
  void SendAbortNotice() {
    if (!abort_notice_.empty()) WriteAbortNotice();
  }

  bool has_unsent() const { return !unsent_.empty(); }
  bool empty() const { return unsent_.empty() && abort_notice_.empty(); }

 private:
  bool Write(Operation* op);
  bool WritePieces(Operation* op);
  void WriteAbortNotice();

  Peers& peers_;
  NameTable& names_;
  std::deque<Operation*> unsent_;  // in order of submission
  std::string abort_notice_;       // not sent yet
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_OUTBOX_H_
